"""Matrix products with sums wider than their operands: gradients of weights, and logits."""

from __future__ import annotations

import torch
from torch import Tensor


def keep_sums_whole() -> None:
    """From here on no library of this process cuts the sum of a narrow product into parts that are added later.

    It would do so where rows are few, and round otherwise then than where they are many.
    """
    if not torch.cuda.is_available():
        return
    torch.backends.cuda.preferred_blas_library("cublaslt")  # the one that can be told so
    for name in ("bf16", "fp16"):
        setattr(torch.backends.cuda.matmul, f"allow_{name}_reduced_precision_reduction", (False, False))


def weight_gradient(d_output: Tensor, state: Tensor, dtype: torch.dtype) -> Tensor:
    """d_output [T, O], state [T, I] -> [O, I] in `dtype`, rounded to it at the end if at all."""
    return product(d_output.t(), state, dtype)


def product(one: Tensor, other: Tensor, dtype: torch.dtype) -> Tensor:
    """one @ other in another type than theirs, rounded once where that is narrower."""
    if one.dtype == torch.promote_types(one.dtype, dtype):
        return torch.mm(one, other).to(dtype)
    if one.is_cuda and dtype == torch.float32:
        return torch.ops.aten.mm.dtype(one, other, dtype)  # type: ignore[no-any-return]
    return torch.mm(one.to(dtype), other.to(dtype))


def add_product(total: Tensor, one: Tensor, other: Tensor) -> None:
    """total += one @ other, in the type of `total`."""
    if one.dtype == total.dtype:
        total.addmm_(one, other)
    elif one.is_cuda and total.dtype == torch.float32:
        torch.ops.aten.addmm.dtype_out(total, one, other, total.dtype, out=total)
    else:
        total.addmm_(one.to(total.dtype), other.to(total.dtype))
