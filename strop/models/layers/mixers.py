"""Layers that ask their cache for more than keys, over packed sequences: for a state, or for a length.

Mixers of transformers (linear attention, state spaces, short convolutions) ask the same questions of any cache: the
last inputs of a convolution, and a state. Here the answers are tensors by name, for some rows of one layer; which rows
follow which, the plan of a forward pass says. Attention that counts positions by the length of its cache is told them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from strop.models.layers.attention import current, current_plan
from strop.models.layers.prefix_tree import States

_ASKED = "get_conv_state"  # what every mixer asks of its cache
_COUNTED = "get_seq_length"
_SCANNED = "state"


def mixers(model: Any) -> list[Any]:
    """Modules that keep a state."""
    return [each for each in model.modules() if _ASKED in _names(type(each))]


def on_plans(model: Any) -> None:
    """Let mixers ask the plan of a forward pass which tokens follow which."""
    for module in mixers(model):
        _replace(module, forward=_forward(type(module).forward), is_stepwise=False)
    for module in (each for each in model.modules() if _COUNTED in _names(type(each)) and hasattr(each, "layer_idx")):
        _replace(module, forward=_counting(type(module).forward))


def _replace(module: Any, **members: Any) -> None:
    """Give a module a class of its own: a function on the instance would not survive a copy of the model."""
    kind = type(module)
    module.__class__ = type(kind.__name__, (kind,), members)


def _names(kind: type) -> tuple[str, ...]:
    """Names in the code of a module's forward pass."""
    code = getattr(inspect.unwrap(kind.forward), "__code__", None)  # type: ignore[attr-defined]
    return () if code is None else code.co_names


def _forward(inner: Callable[..., Tensor]) -> Callable[..., Tensor]:
    known = inspect.signature(inner).parameters
    cache = next(name for name in ("cache_params", "past_key_values") if name in known)

    def forward(self: Any, hidden_states: Tensor, *given: Any, **named: Any) -> Tensor:
        found = current_plan().mix(int(self.layer_idx), Mixing(self, inner, cache), hidden_states[0])
        return found.unsqueeze(0)

    forward.__wrapped__ = inner  # type: ignore[attr-defined]
    return forward


def _counting(inner: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, *given: Any, **named: Any) -> Any:
        if (positions := current().positions) is not None:
            named["past_key_values"] = _Lengths(positions)
        return inner(self, *given, **named)

    return forward


class _Lengths:
    """Cache without keys, whose length brings each packed token to its position."""

    def __init__(self, positions: Tensor) -> None:
        self._length = positions - torch.arange(len(positions), device=positions.device)

    def get_seq_length(self, layer_idx: int = 0) -> Tensor:
        return self._length

    def update(self, key: Tensor, value: Tensor, layer_idx: int, *_: Any) -> tuple[Tensor, Tensor]:
        return key, value


@dataclass(frozen=True, eq=False)
class Mixing:
    """Mixer of one layer, as a function of tokens and states."""

    module: Any  # `is_stepwise` where it goes on from a state by one token at a time alone
    inner: Callable[..., Tensor]
    cache: str  # its argument

    def __call__(self, hidden: Tensor, before: States) -> tuple[Tensor, States]:
        """[N, L, hidden] behind these states, which may be written -> [N, L, hidden], and the states behind those."""
        if before and self.module.is_stepwise and hidden.shape[1] > 1:
            found = []
            for token in torch.split(hidden, 1, 1):
                output, before = self(token, before)
                found.append(output)
            return torch.cat(found, 1), before
        kept = _Cache(before)
        limits = getattr(self.module, "time_step_limit", None)
        with _Limited(*limits) if limits and before and hidden.shape[1] == 1 else nullcontext():
            return self.inner(self.module, hidden, **{self.cache: kept}), kept.states


class _Limited(TorchFunctionMode):
    """Time steps of a single token kept within their limits, which transformers does in a scan alone."""

    def __init__(self, least: float, most: float) -> None:
        super().__init__()
        self._least, self._most = least, most

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return found.clamp(self._least, self._most) if func is F.softplus else found


def is_scanned(kind: str) -> bool:
    """Whether states of this kind are those of a scan, not the last inputs of a convolution."""
    return kind.startswith(_SCANNED)


class _Cache:
    """Cache of transformers, as far as mixers ask it, for some rows of one layer."""

    def __init__(self, states: States) -> None:
        self.states = dict(states)

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        return self.states.get(f"inputs {state_idx}")

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        return self.states.get(f"{_SCANNED} {state_idx}")

    def update_conv_state(
        self, conv_states: Tensor, layer_idx: int, state_idx: int = 0, conv_kernel_size: int | None = None, **_: Any
    ) -> Tensor:
        """[N, C, L], behind the inputs that were there."""
        before = self.get_conv_state(layer_idx, state_idx)
        if before is not None:
            whole, size = torch.cat((before, conv_states), -1), before.shape[-1]
        else:
            size = conv_kernel_size or conv_states.shape[-1]
            whole = F.pad(conv_states, (max(size - conv_states.shape[-1], 0), 0))
        self.states[f"inputs {state_idx}"] = whole[..., -size:]
        return whole

    def update_recurrent_state(self, recurrent_states: Tensor, layer_idx: int, state_idx: int = 0, **_: Any) -> Tensor:
        self.states[f"{_SCANNED} {state_idx}"] = recurrent_states
        return recurrent_states

    def has_previous_state(self, layer_idx: int | None = None, state_idx: int | None = None) -> bool:
        return bool(self.states)

    def is_recording_past(self, layer_idx: int) -> bool:
        """As if: the inputs of a convolution are then joined, never written in place."""
        return True
