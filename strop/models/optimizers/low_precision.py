"""Number formats smaller than float32 with stochastic rounding, read and written piece by piece.

Rounding up with a probability equal to the remainder (Gupta et al., 1502.02551) makes small changes add up right on
average; rounding to nearest would lose every one of them. Adding random bits below a float32's last kept bit and
truncating is exactly that, because within one power of two its bits are linear in its value.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

BLOCK = 256  # numbers of eight bits that share a scale
_ONE = 127  # the exponent of 1.0


class Numbers(Protocol):
    """Numbers of a tensor, flat: [N]."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What must be kept to go on from here, by name."""
        ...

    def read(self, piece: slice) -> Tensor:
        """Float32, for the caller to change."""
        ...

    def write(self, piece: slice, values: Tensor, rng: Generator) -> None: ...


@dataclass(frozen=True, eq=False)
class Whole(Numbers):
    """Float32."""

    held: Tensor

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {"": self.held}

    def read(self, piece: slice) -> Tensor:
        return self.held.detach().view(-1)[piece].clone()

    def write(self, piece: slice, values: Tensor, rng: Generator) -> None:
        self.held.detach().view(-1)[piece] = values


@dataclass(frozen=True, eq=False)
class Halved(Numbers):
    """Bfloat16 with stochastic rounding."""

    held: Tensor

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {"": self.held}

    def read(self, piece: slice) -> Tensor:
        return self.held.detach().view(-1)[piece].float()

    def write(self, piece: slice, values: Tensor, rng: Generator) -> None:
        self.held.detach().view(-1)[piece] = rounded_at_random(values, rng)


@dataclass(frozen=True, eq=False)
class Split(Numbers):
    """Bfloat16 for computation, and apart from it the 16 bits that make it float32 again: nothing is lost."""

    held: Tensor
    rest: Tensor  # [N], int16

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {"rest": self.rest}

    def read(self, piece: slice) -> Tensor:
        return joined(self.held.detach().view(-1)[piece], self.rest[piece])

    def write(self, piece: slice, values: Tensor, rng: Generator) -> None:
        self.held.detach().view(-1)[piece], self.rest[piece] = split(values)


@dataclass(frozen=True, eq=False)
class EightBits(Numbers):
    """Eight bits: four of exponent relative to the block's largest, and four of mantissa, or three and a sign.

    Without a sign no number becomes zero next to a larger one: it would be the denominator of a fraction.
    """

    codes: Tensor  # [N], uint8
    scales: Tensor  # [N / BLOCK], float32
    is_signed: bool

    @classmethod
    def zeros(cls, count: int, device: torch.device, is_signed: bool) -> EightBits:
        codes = torch.zeros(count, dtype=torch.uint8, device=device)
        return cls(codes, torch.zeros(-(-count // BLOCK), device=device), is_signed)

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {"codes": self.codes, "scales": self.scales}

    def read(self, piece: slice) -> Tensor:
        codes = self.codes[piece].to(torch.int32)
        sizes = codes & self._most
        values = ((sizes + self._least) << self._cut).view(torch.float32)
        if self.is_signed:
            values = torch.where(sizes > 0, values, 0.0)
            values = torch.where(codes > self._most, -values, values)
        return values * self.scales[self._blocks(piece)].repeat_interleave(BLOCK)[: len(values)]

    def write(self, piece: slice, values: Tensor, rng: Generator) -> None:
        """`piece` begins with a block."""
        short = -len(values) % BLOCK
        sizes = F.pad(values.abs(), (0, short)).view(-1, BLOCK)
        largest = sizes.amax(1, keepdim=True)
        sizes = (sizes / torch.where(largest > 0, largest, 1.0)).view(-1)[: len(values)]
        codes = (_raised(sizes, self._cut, rng) >> self._cut) - self._least
        codes = codes.clamp_(0, self._most)
        if self.is_signed:
            codes += (values < 0).to(torch.int32) * (self._most + 1)
        self.codes[piece] = codes.to(torch.uint8)
        self.scales[self._blocks(piece)] = largest.squeeze(1)

    @property
    def _cut(self) -> int:
        """Bits of a float32 that are not kept."""
        return 20 if self.is_signed else 19

    @property
    def _most(self) -> int:
        """The code of 1.0, the largest of a block."""
        return 127 if self.is_signed else 255

    @property
    def _least(self) -> int:
        """What a float32 begins with whose code is 0."""
        return (_ONE << (23 - self._cut)) - self._most

    def _blocks(self, piece: slice) -> slice:
        return slice(piece.start // BLOCK, -(-min(piece.stop, len(self.codes)) // BLOCK))


def rounded_at_random(values: Tensor, rng: Generator) -> Tensor:
    """Float32 -> bfloat16, one of its two neighbours, the nearer one more often; what fits stays as it is."""
    return (_raised(values, 16, rng) >> 16).to(torch.int16).view(torch.bfloat16)


def split(values: Tensor) -> tuple[Tensor, Tensor]:
    """Float32 -> the nearest bfloat16, of two equally near the larger in size, and what `joined` needs besides."""
    bits = values.contiguous().view(torch.int32)
    high = (bits + 0x8000) >> 16
    return high.to(torch.int16).view(torch.bfloat16), (bits - (high << 16)).to(torch.int16)


def joined(high: Tensor, rest: Tensor) -> Tensor:
    """The float32 that was `split`."""
    return ((high.contiguous().view(torch.int16).to(torch.int32) << 16) + rest).view(torch.float32)


def rng_of(device: torch.device, *of: object) -> Generator:
    """Random numbers of their own for these things, the same whenever they are asked for."""
    digest = hashlib.blake2b("|".join(map(str, of)).encode(), digest_size=7).digest()
    return Generator(device).manual_seed(int.from_bytes(digest))


def _raised(values: Tensor, cut: int, rng: Generator) -> Tensor:
    """Bits of float32 numbers after a random number below 2^cut was added to each."""
    bits = values.contiguous().view(torch.int32)
    return torch.empty_like(bits).random_(0, 1 << cut, generator=rng) + bits
