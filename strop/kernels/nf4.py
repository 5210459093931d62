"""NF4 quantization: weights in four bits (QLoRA, Dettmers et al., 2305.14314).

Of 64 numbers in a row each is one of 16 quantiles of a normal distribution times the largest absolute value, held in
float32. Two codes share a byte, the first in its upper half, as in bitsandbytes. Weights are unpacked one after the
other into shared scratch memory, so that only one of them is wide at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 64
VALUES = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_PIECE = 1 << 22  # bytes that are unpacked at once on a CPU


def pack(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight [O, I] -> codes [O I / 2] in uint8 and scales [O I / BLOCK] in float32."""
    parts = [_packed(part) for part in torch.split(weight.reshape(-1, BLOCK), _PIECE // BLOCK)]
    return torch.cat([codes for codes, _ in parts]), torch.cat([scales for _, scales in parts])


def _packed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """[B, BLOCK] -> [B * BLOCK / 2], [B]."""
    values = torch.tensor(VALUES, device=blocks.device)
    scales = blocks.abs().amax(1).float()
    shares = blocks.float() / torch.where(scales > 0, scales, 1.0).unsqueeze(1)
    codes = torch.bucketize(shares, (values[1:] + values[:-1]) / 2).to(torch.uint8).view(-1, 2)
    return codes[:, 0] << 4 | codes[:, 1], scales


def unpack(codes: Tensor, scales: Tensor, into: Tensor) -> None:
    """Write the weights [O, I], rounded once to the type of what they are written to."""
    flat = into.view(-1)
    if flat.is_cuda:
        from strop.kernels.triton import nf4

        nf4.unpack(codes, scales, flat)
    else:
        reference_unpack(codes, scales, flat)


def reference_unpack(codes: Tensor, scales: Tensor, into: Tensor) -> None:
    """A piece at a time; into [N]."""
    values = torch.tensor(VALUES, device=codes.device)
    both = torch.stack([values.repeat_interleave(16), values.repeat(16)], 1)  # of every byte: [256, 2]
    sizes = (_PIECE, 2 * _PIECE // BLOCK, 2 * _PIECE)
    pieces = zip(
        *(torch.split(each, size) for each, size in zip((codes, scales, into), sizes, strict=True)), strict=True
    )
    for bytes_, largest, place in pieces:
        blocks = both[bytes_.to(torch.int32)].view(-1, BLOCK) * largest.unsqueeze(1)
        place.copy_(blocks.view(-1))


class Scratch:
    """Scratch memory for one unpacked weight at a time; each CUDA stream has its own."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._place: Tensor | None = None

    def reserve(self, count: int, device: torch.device) -> None:
        """Before anything is read: a recorded graph knows places by their address."""
        if self._place is None or len(self._place) < count:
            self._place = torch.empty(count, dtype=self._dtype, device=device)

    def of(self, rows: int, width: int) -> Tensor:
        assert self._place is not None
        return self._place[: rows * width].view(rows, width)


@dataclass(frozen=True, eq=False)
class Packed4:
    """Stacked NF4 matrices that read the same input: codes, scales and number of rows of each."""

    parts: Sequence[tuple[Tensor, Tensor, int]]
    width: int
    scratch: Scratch

    def __post_init__(self) -> None:
        self.scratch.reserve(self.rows * self.width, self.parts[0][0].device)

    @property
    def rows(self) -> int:
        return sum(rows for _, _, rows in self.parts)

    def read(self) -> Tensor:
        """[rows, width], until something else is read."""
        whole = self.scratch.of(self.rows, self.width)
        places = torch.split(whole, [rows for _, _, rows in self.parts])
        for (codes, scales, _), place in zip(self.parts, places, strict=True):
            unpack(codes, scales, place)
        return whole
