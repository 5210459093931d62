"""Matrix products of FP8 numbers (E4M3) with block-wise scales, forward and backward.

Scales come from the numbers themselves, so an engine and a trainer with the same weights and tokens compute the same
result, whatever else is in their batches. A GPU with FP8 instructions uses them; elsewhere the numbers are multiplied
in float32, which differs only in how sums are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels import swiglu

BLOCK = 128
HIGHEST = 448.0  # of E4M3
LEAST = 1e-4  # a block is scaled as if it had a number of this size


class Eights(NamedTuple):
    """FP8 matrix [R, C] whose rows share scales by BLOCK: value = code * scale."""

    codes: Tensor  # [R, whole blocks of C], zero behind the last column
    scales: Tensor  # [blocks of C, R] float32
    size: int  # C
    share: int = 1  # so many rows, counted from a multiple of it, have the same scales

    @classmethod
    def empty(cls, count: int, size: int, device: torch.device, share: int = 1) -> Eights:
        """Room for [count, size]."""
        blocks = -(-size // BLOCK)
        codes = torch.empty(count, blocks * BLOCK, dtype=torch.float8_e4m3fn, device=device)
        return cls(codes, torch.empty(blocks, count, device=device), size, share)

    @classmethod
    def squares(cls, rows: Sequence[int], size: int, device: torch.device) -> tuple[Eights, list[Eights]]:
        """Room for weights [rows, size] below one another, and for each of them: each begins its own squares."""
        whole = cls.empty(sum(rows), size, device, math.gcd(BLOCK, *rows))
        parts = zip(torch.split(whole.codes, list(rows)), torch.split(whole.scales, list(rows), 1), strict=True)
        return whole, [cls(*part, size, whole.share) for part in parts]

    def read(self) -> Tensor:
        """[R, C] as eight bits hold it."""
        wide = self.codes.float().view(len(self.codes), -1, BLOCK) * self.scales.t().unsqueeze(2)
        return wide.flatten(1)[:, : self.size].contiguous()


@cache
def multiplies_eights(device: torch.device) -> bool:
    """Whether it is a GPU of the Hopper generation, whose products of eight bits the kernels are proved on."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 9


def encode(matrix: Tensor) -> Eights:
    """[R, C] by 1 x BLOCK."""
    if multiplies_eights(matrix.device):
        from strop.kernels.triton import eight_bits

        return eight_bits.encode(matrix)
    return reference_encode(matrix)


def encode_swiglu(gate_up: Tensor, is_gelu: bool) -> Eights:
    """[T, 2F] -> [T, F] by 1 x BLOCK, as `swiglu` gives it."""
    if multiplies_eights(gate_up.device):
        from strop.kernels.triton import eight_bits

        return eight_bits.encode_swiglu(gate_up, is_gelu)
    return reference_encode(swiglu.forward(gate_up, is_gelu))


def encode_squares(weight: Tensor, into: Eights) -> None:
    """[O, I] by BLOCK x BLOCK."""
    if multiplies_eights(weight.device):
        from strop.kernels.triton import eight_bits

        eight_bits.encode_squares(weight, into)
    else:
        reference_encode_squares(weight, into)


def encode_across(matrix: Tensor, is_held: bool) -> Eights:
    """[T, C] by BLOCK x 1, as [C, T]; with `is_held` what 1 x BLOCK hold of it."""
    if multiplies_eights(matrix.device):
        from strop.kernels.triton import eight_bits

        return eight_bits.encode_across(matrix, is_held)
    return reference_encode((reference_encode(matrix).read() if is_held else matrix).t())


def multiply(one: Eights, other: Eights, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """one [R, C], other [O, C], bias [O] -> [R, O], rounded once to `dtype`."""
    if multiplies_eights(one.codes.device):
        from strop.kernels.triton import eight_bits

        return eight_bits.multiply(one, other, bias, dtype)
    return reference_multiply(one.read(), other.read(), bias, dtype)


def turned(held: Eights) -> Eights:
    """A weight [O, I] that shares scales by squares, as [I, O]."""
    count, size = len(held.codes), held.size
    codes = held.codes.new_zeros(size, -(-count // BLOCK) * BLOCK)
    codes[:, :count] = held.codes[:, :size].t()
    scales = held.scales[:, ::BLOCK].t().repeat_interleave(BLOCK, 1)[:, :size].contiguous()
    return Eights(codes, scales, count, BLOCK)


def state_pull(d_output: Tensor, held: Eights) -> Tensor:
    """The gradient of the state [T, I]; rounded along what is summed over, the outputs."""
    return multiply(encode(d_output), turned(held), None, d_output.dtype)


def weight_pull(d_output: Tensor, state: Tensor, dtype: torch.dtype) -> Tensor:
    """The gradient of the weight [O, I]; both are rounded along the tokens that they sum over."""
    return multiply(encode_across(d_output, False), encode_across(state, True), None, dtype)


class Product(torch.autograd.Function):
    """Product of state [T, I] with weight [O, I] in FP8 -> [T, O] in a dtype; the gradient goes to the weight."""

    @staticmethod
    def forward(ctx: Any, state: Tensor, weight: Tensor, held: Eights, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(state, *held[:2])
        ctx.rest, ctx.dtype = held[2:], weight.dtype
        return multiply(encode(state), held, None, dtype)

    @staticmethod
    def backward(ctx: Any, *d_outputs: Tensor) -> tuple[Tensor, Tensor, None, None]:
        state, codes, scales = ctx.saved_tensors
        d_output = d_outputs[0].contiguous()
        d_state = state_pull(d_output, Eights(codes, scales, *ctx.rest)).to(state.dtype)
        return d_state, weight_pull(d_output, state, ctx.dtype), None, None


def rounded(matrix: Tensor, rows: int, columns: int) -> Tensor:
    """[R, C] as eight bits hold it, in blocks of rows x columns; those at the edge may be smaller."""
    codes, scales = _encoded(matrix, rows, columns)
    wide = codes.float() * scales.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return wide[: matrix.shape[0], : matrix.shape[1]].to(matrix.dtype)


def reference_encode(matrix: Tensor) -> Eights:
    codes, scales = _encoded(matrix, 1, BLOCK)
    return Eights(codes, scales.t().contiguous(), matrix.shape[1])


def reference_encode_squares(weight: Tensor, into: Eights) -> None:
    codes, scales = _encoded(weight, BLOCK, BLOCK)
    into.codes.copy_(codes[: len(weight)])
    into.scales.copy_(scales.repeat_interleave(BLOCK, 0)[: len(weight)].t())


def reference_multiply(state: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Of what eight bits hold, in float32."""
    with torch.autocast(state.device.type, enabled=False):
        found = state @ weight.t() if bias is None else torch.addmm(bias.float(), state, weight.t())
    return found.to(dtype)


def _encoded(matrix: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Codes [R, C] of whole blocks, and the scale of each block."""
    down, right = -matrix.shape[0] % rows, -matrix.shape[1] % columns
    padded = F.pad(matrix.float(), (0, right, 0, down))
    blocks = padded.view(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    highest = blocks.abs().amax((1, 3), keepdim=True).clamp(min=LEAST)
    scale = torch.tensor(HIGHEST) / highest  # a number over a tensor would be rounded twice
    codes = (blocks * scale).clamp(-HIGHEST, HIGHEST).to(torch.float8_e4m3fn)
    return codes.view(padded.shape), scale.reciprocal()[:, 0, :, 0]
