"""NF4 linear layers, unpacked whenever they are read: the frozen base weights of QLoRA."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.errors import ConfigurationError
from strop.kernels.nf4 import BLOCK, pack, unpack
from strop.models.layers.decoder_part import named_decoder_modules


class FourBitLinear(torch.nn.Linear):
    """NF4 linear layer, found like any `nn.Linear`; codes and scales are parameters, so that readers can share them."""

    def __init__(self, linear: torch.nn.Linear, device: str) -> None:
        torch.nn.Module.__init__(self)
        weight = linear.weight.detach().to(device)
        self.in_features, self.out_features, self.dtype = linear.in_features, linear.out_features, weight.dtype
        codes, scales = pack(weight)
        codes = codes.view(-1, self.in_features // 2) if self.in_features % 2 == 0 else codes  # rows are proved quickly
        self.codes, self.scales = (torch.nn.Parameter(each, requires_grad=False) for each in (codes, scales))
        self.bias = linear.bias

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """Unpacked anew."""
        place = torch.empty(self.out_features, self.in_features, dtype=self.dtype, device=self.codes.device)
        unpack(self.codes.detach().view(-1), self.scales.detach(), place)
        return place

    def forward(self, state: Tensor) -> Tensor:
        return F.linear(state, self.weight, self.bias)


def bytes_in_four_bits(model: Any) -> int:
    """Of all weights, the others in bfloat16, and of two places for what is being read; its shape alone counts."""
    sizes = [each.weight.numel() for _, each in _linear(model)]
    wide = sum(int(each.numel()) for each in model.parameters()) - sum(sizes)
    return sum(sizes) // 2 + 4 * sum(sizes) // BLOCK + 2 * wide + 2 * 2 * 2 * max(sizes)


def has_experts(model: Any) -> bool:
    """Whether weights lie in tensors that are no linear layer's."""
    return any(each.dim() > 2 for each in model.parameters())


def quantise(model: Any, device: str) -> None:
    """Put the weights of every linear layer but the output one into four bits, one layer at a time."""
    if has_experts(model):
        raise ConfigurationError('base="nf4" does not reach experts, which this model has: use base="plain"')
    found = _linear(model)
    if odd := [name for name, each in found if each.weight.numel() % BLOCK]:
        raise ConfigurationError(f"weights in four bits share scales by {BLOCK}, of which {odd[0]} has no whole number")
    while found:
        name, each = found.pop()  # so that the wide weight is gone with it
        owner, _, last = name.rpartition(".")
        setattr(model.get_submodule(owner), last, FourBitLinear(each, device))


def _linear(model: Any) -> list[tuple[str, torch.nn.Linear]]:
    """By name, without the output layer."""
    head = model.get_output_embeddings()
    return [
        (name, each)
        for name, each in named_decoder_modules(model)
        if type(each) is torch.nn.Linear and each is not head
    ]
