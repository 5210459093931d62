"""Bindings of `train.c` (training kernels) to contiguous float32 tensors."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from strop.kernels.cpu.build import library

if TYPE_CHECKING:
    from strop.kernels.attention import Heads, Varlen

BLOCK = 64  # as in train.c


class _Plan(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("blocks", "tokens", "queries", "keys", "size", "longest")),
        ("table", ctypes.c_void_p),
        ("behind", ctypes.c_void_p),
        ("scale", ctypes.c_float),
    )


class Train:
    """Compiled functions with their signatures."""

    def __init__(self, compiled: ctypes.CDLL) -> None:
        number, pointer, real, threads = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float, ctypes.c_int
        plan = ctypes.POINTER(_Plan)
        self._functions = compiled
        compiled.norm_forward.argtypes = (number, number, *[pointer] * 3, real, *[pointer] * 3, threads)
        compiled.norm_backward.argtypes = (number, number, *[pointer] * 9, threads)
        compiled.swiglu_forward.argtypes = (number, number, pointer, pointer, threads)
        compiled.swiglu_backward.argtypes = (number, number, *[pointer] * 4, threads)
        compiled.rotate.argtypes = (*[number] * 4, *[pointer] * 3, real, threads)
        compiled.attention_room.argtypes, compiled.attention_room.restype = (plan,), number
        compiled.attend.argtypes = (plan, *[pointer] * 4, threads)
        compiled.attend_back.argtypes = (plan, *[pointer] * 6, threads)
        for function in (compiled.norm_forward, compiled.norm_backward, compiled.swiglu_forward, compiled.rotate):
            function.restype = None
        for function in (compiled.swiglu_backward, compiled.attend, compiled.attend_back):
            function.restype = None

    def norm_forward(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        state = residual if delta is None else torch.empty_like(residual)
        normed, scale = torch.empty_like(residual), residual.new_empty(len(residual))
        self._functions.norm_forward(
            *residual.shape, _at(residual), _at(delta), _at(weight), epsilon, _at(state), _at(normed), _at(scale),
            torch.get_num_threads(),
        )  # fmt: skip
        return state, normed, scale

    def norm_backward(
        self,
        d_sum: Tensor | None,
        d_normed: Tensor,
        residual: Tensor,
        delta: Tensor | None,
        weight: Tensor,
        scale: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the sum and of the weight, and the normalised state once more."""
        d_state, normed = torch.empty_like(residual), torch.empty_like(residual)
        parts = residual.new_empty(-(-len(residual) // BLOCK), residual.shape[1])
        given = (_at(each) for each in (d_sum, d_normed, residual, delta, weight, scale))
        self._functions.norm_backward(
            *residual.shape, *given, _at(d_state), _at(normed), _at(parts), torch.get_num_threads()
        )
        return d_state, parts.sum(0), normed

    def swiglu_forward(self, gate_up: Tensor) -> Tensor:
        rows, width = len(gate_up), gate_up.shape[1] // 2
        product = gate_up.new_empty(rows, width)
        self._functions.swiglu_forward(rows, width, _at(gate_up), _at(product), torch.get_num_threads())
        return product

    def swiglu_backward(self, gate_up: Tensor, d_product: Tensor) -> tuple[Tensor, Tensor]:
        found, product = torch.empty_like(gate_up), torch.empty_like(d_product)
        tensors = (_at(each) for each in (gate_up, d_product, found, product))
        self._functions.swiglu_backward(*product.shape, *tensors, torch.get_num_threads())
        return found, product

    def rotate(self, fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads, is_back: bool) -> None:
        counts = (len(fused), heads.queries + 2 * heads.keys, heads.queries + heads.keys, heads.size)
        tensors = (_at(fused), _at(cosine), _at(sine))
        self._functions.rotate(*counts, *tensors, -1.0 if is_back else 1.0, torch.get_num_threads())

    def attend(self, fused: Tensor, heads: Heads, plan: Varlen, scale: float) -> tuple[Tensor, Tensor]:
        threads, given = torch.get_num_threads(), _plan(plan, len(fused), heads, scale)
        output = fused.new_empty(len(fused), heads.queries * heads.size)
        level = fused.new_empty(heads.queries, len(fused))
        scratch = fused.new_empty(threads, self._functions.attention_room(given))
        tensors = (_at(fused), _at(output), _at(level), _at(scratch))
        self._functions.attend(given, *tensors, threads)
        return output, level

    def attend_back(
        self, d_output: Tensor, fused: Tensor, output: Tensor, level: Tensor, heads: Heads, plan: Varlen, scale: float
    ) -> Tensor:
        threads, given = torch.get_num_threads(), _plan(plan, len(fused), heads, scale)
        found = torch.zeros_like(fused)
        scratch = fused.new_empty(threads, self._functions.attention_room(given))
        tensors = [_at(each) for each in (d_output, fused, output, level, found, scratch)]
        self._functions.attend_back(given, *tensors, threads)
        return found


@cache
def compiled() -> Train | None:
    """None where there is no compiler."""
    found = library("train")
    return None if found is None else Train(found)


def serving(*tensors: Tensor | None) -> Train | None:
    """The compiled functions, if all of these tensors are such as they take."""
    given = [each for each in tensors if each is not None]
    if any(each.is_cuda or each.dtype != torch.float32 or not each.is_contiguous() for each in given):
        return None
    return compiled()


def _at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _plan(plan: Varlen, tokens: int, heads: Heads, scale: float) -> _Plan:
    counts = (len(plan.queries), tokens, heads.queries, heads.keys, heads.size, plan.longest)
    return _Plan(*counts, plan.queries.data_ptr(), _at(plan.gather), scale)
