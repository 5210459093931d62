"""Routers of experts: which experts tokens take, told to the plan of a forward pass, or by it.

Which of two near experts is the larger may be rounding; so whoever computes a completion again takes those it was
sampled with (rollout routing replay, 2510.11370). Routers of all families choose by `topk` over one score for each
expert; that call is answered by the plan, and weights are computed from the choice as the family does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from strop.models.layers.attention import current_plan

_CHOICES = (torch.topk, Tensor.topk)


def with_experts(model: Any) -> list[Any]:
    """Modules that route tokens to experts, in the order of layers."""
    return [each for each in model.modules() if hasattr(each, "experts") and _count(each.experts)]


def on_plans(model: Any) -> None:
    """Let routers ask the plan of a forward pass which experts are taken."""
    for index, module in enumerate(with_experts(model)):
        kind = type(module)
        forward = _forward(kind.forward, index, _count(module.experts))
        module.__class__ = type(kind.__name__, (kind,), {"forward": forward})


def _count(experts: Any) -> int:
    """How many experts there are."""
    found = getattr(experts, "num_experts", None)
    return int(found) if found is not None else len(experts) if isinstance(experts, torch.nn.ModuleList) else 0


def _forward(inner: Callable[..., Any], index: int, count: int) -> Callable[..., Any]:
    def forward(self: Any, *given: Any, **named: Any) -> Any:
        with _Chosen(index, count):
            return inner(self, *given, **named)

    return forward


class _Chosen(TorchFunctionMode):
    """Choice of the largest among the scores of all experts, which the plan may change."""

    def __init__(self, index: int, count: int) -> None:
        super().__init__()
        self._index, self._count = index, count

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func not in _CHOICES or not self._is_choice(args[0]):
            return found
        scores, chosen = args[0], found.indices
        taken = current_plan().route(self._index, chosen.reshape(-1, chosen.shape[-1])).view_as(chosen)
        return torch.return_types.topk((scores.gather(-1, taken), taken))

    def _is_choice(self, scores: Tensor) -> bool:
        """Of experts [T, E] or [1, T, E], not of groups of them [T, groups, E / groups]."""
        return scores.shape[-1] == self._count and (scores.ndim == 2 or len(scores) == 1)
