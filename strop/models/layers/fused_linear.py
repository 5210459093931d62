"""Fused linear layers: those that read the same input are one matrix, of which their modules hold views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from strop.models.layers.adapters import is_packed
from strop.models.layers.eight_bit_linear import is_held

Linear: TypeAlias = tuple[Tensor, Tensor | None]  # weight and bias


def fuse(*modules: Any) -> Linear:
    """One matrix of several; those that are one already stay as they are, so that several readers share it.

    It lies transposed in memory: for few rows a multiplication by it is up to 1.6 times quicker on a CPU.
    """
    biases = [module.bias for module in modules if module.bias is not None]
    bias = _joined(biases) if biases else None
    if is_packed(modules[0]) or is_held(modules[0]):  # and lies elsewhere, see `room_for` and `joined`
        return torch.empty(0), bias
    return _joined([module.weight for module in modules]), bias


def stacked(parameters: Sequence[Tensor]) -> Tensor:
    """The same row after row, for whoever writes them: each stays in one piece of memory."""
    whole = torch.cat([parameter.detach() for parameter in parameters])
    for parameter, part in zip(parameters, torch.split(whole, [len(each) for each in parameters]), strict=True):
        parameter.data = part
    return whole


def _joined(parameters: Sequence[Tensor]) -> Tensor:
    """A matrix lies transposed, a vector as ever."""
    if (found := _found(parameters)) is not None:
        return found
    whole = torch.cat([parameter.detach() for parameter in parameters])
    whole = whole.t().contiguous().t() if whole.dim() == 2 else whole
    sizes = [len(parameter) for parameter in parameters]
    for parameter, part in zip(parameters, torch.split(whole, sizes), strict=True):
        parameter.data = part
    return whole


def _found(parameters: Sequence[Tensor]) -> Tensor | None:
    """The matrix whose rows these are already, one after the other."""
    first, count = parameters[0], sum(len(each) for each in parameters)
    strides, place = (1, count)[: first.dim()], first.storage_offset()
    for each in parameters:
        if each.stride() != strides or each.storage_offset() != place or not _is_one_memory(each, first):
            return None
        place += len(each)
    return first.detach().as_strided((count, *first.shape[1:]), strides)


def _is_one_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
