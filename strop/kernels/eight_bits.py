"""A linear layer whose products are of 8-bit numbers (E4M3), forward and backward, with a scale for every block.

Numbers are rounded to what eight bits hold and multiplied in the type they had: the result is that of a machine that
multiplies eight bits and sums in that type. Scales come from the numbers themselves, so an engine and a trainer that
hold the same weights and read the same tokens compute the same, whatever else they are given.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 128
HIGHEST = 448.0  # of E4M3
_LEAST = 1e-4  # a block is scaled as if it had a number of this size


def rounded(matrix: Tensor, rows: int, columns: int) -> Tensor:
    """[R, C] as eight bits hold it, in blocks of rows x columns; those at the edge may be smaller."""
    down, right = -matrix.shape[0] % rows, -matrix.shape[1] % columns
    padded = F.pad(matrix.float(), (0, right, 0, down))
    blocks = padded.view(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    scale = HIGHEST / blocks.abs().amax((1, 3), keepdim=True).clamp(min=_LEAST)
    held = (blocks * scale).clamp(-HIGHEST, HIGHEST).to(torch.float8_e4m3fn)
    found = (held.float() / scale).view(padded.shape)[: matrix.shape[0], : matrix.shape[1]]
    return found.to(matrix.dtype)


def rounded_weight(weight: Tensor) -> Tensor:
    """[O, I] in squares."""
    return rounded(weight, BLOCK, BLOCK)


class Product(torch.autograd.Function):
    """state [T, I], weight [O, I] and the weight as it is held [O, I] -> [T, O]; the gradient goes to the weight."""

    @staticmethod
    def forward(ctx: Any, state: Tensor, weight: Tensor, held: Tensor) -> Tensor:
        read = rounded(state, 1, BLOCK)
        ctx.save_for_backward(read, held)
        return read @ held.t()

    @staticmethod
    def backward(ctx: Any, *d_outputs: Tensor) -> tuple[Tensor, Tensor, None]:
        read, held = ctx.saved_tensors
        [d_output] = d_outputs
        d_state = rounded(d_output, 1, BLOCK) @ held
        d_weight = rounded(d_output, BLOCK, 1).t() @ rounded(read, BLOCK, 1)  # both along the tokens they sum over
        return d_state, d_weight, None
