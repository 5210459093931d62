"""Sharding of a model over the ranks of a process group with PyTorch's FSDP2 (Zhao et al. 2023), and gathering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor


class ShardedModel:
    """Every rank holds a shard of each weight; a layer is whole only while it computes.

    `local` are this rank's shards as plain tensors: elementwise work on them, such as AdamW, is work on the weights.
    """

    def __init__(self, model: Any, mesh: DeviceMesh) -> None:
        self.model = model
        for layer in _layers(model):
            fully_shard(layer, mesh=mesh)
        whole: torch.nn.Module = _Whole(model)
        self._whole: Any = fully_shard(whole, mesh=mesh)
        for module in whole.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)  # shares of a loss add up: gradients are summed, never averaged
                module.set_force_sum_reduction_for_comms(True)  # gloo has no scaled sum
        self._slices: dict[str, Any] = dict(model.named_parameters())  # DTensors
        self.local = {name: tensor.detach().to_local() for name, tensor in self._slices.items() if tensor.requires_grad}

    def __call__(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """`work(model, ...)` with whole weights; every rank must call it, as often as the others."""
        result = self._whole(work, *arguments)
        if not torch.is_grad_enabled():
            self._whole.reshard()  # otherwise a backward pass does it
        return result

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """Of whole weights."""
        return {name: tensor.shape for name, tensor in self._slices.items()}

    def zero_grad(self) -> None:
        for name in self.local:
            self._slices[name].grad = self.local[name].grad = None

    def gradient_norm(self) -> Tensor:
        """Of the whole gradient; also hands the slices their gradients."""
        for name, slice_ in self.local.items():
            whole = self._slices[name].grad
            slice_.grad = None if whole is None else whole.to_local()
        gradients = [slice_.grad for slice_ in self.local.values() if slice_.grad is not None]
        squares = torch.nn.utils.get_total_norm(gradients).square()
        dist.all_reduce(squares)
        return squares.sqrt()

    def weights(self) -> dict[str, Tensor]:
        """Whole, on every rank."""
        return {name: tensor.detach().full_tensor() for name, tensor in self._slices.items()}

    def joined(self, moments: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Whole moments from slices, by parameter/moment; a number per parameter is the same on every rank."""
        return {key: tensor if tensor.dim() == 0 else self._join(key, tensor) for key, tensor in moments.items()}

    def cut(self, moments: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """This rank's slices of whole moments."""
        return {key: tensor if tensor.dim() == 0 else self._cut(key, tensor) for key, tensor in moments.items()}

    def _join(self, key: str, tensor: Tensor) -> Tensor:
        whole = self._slices[key.rpartition("/")[0]]
        spread = DTensor.from_local(
            tensor, whole.device_mesh, whole.placements, run_check=False, shape=whole.shape, stride=whole.stride()
        )
        return spread.full_tensor()

    def _cut(self, key: str, tensor: Tensor) -> Tensor:
        slice_ = self._slices[key.rpartition("/")[0]]
        rank, ranks = slice_.device_mesh.get_local_rank(), slice_.device_mesh.size()
        pieces = tensor.chunk(ranks)  # fewer than ranks where there are fewer rows
        return pieces[rank].clone() if rank < len(pieces) else tensor[:0]


class _Whole(torch.nn.Module):
    """Runs any computation on the model as its forward pass, so that output layers called by hand are whole too."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(self.model, *arguments)


def _layers(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The blocks a model repeats: members of its outermost lists."""
    for child in module.children():
        yield from child if isinstance(child, torch.nn.ModuleList) else _layers(child)
