"""Proof of a model when it is loaded: what strop computes of a few tokens is what transformers' own forward pass gives.

Two sequences that begin alike are computed packed, as a trainer does, and by some tokens at a time, as an engine does:
a prompt, single tokens, several that go on from others, and a fork. Windows are so narrow meanwhile that they are
outgrown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from strop.models.layers.attention import (
    NAME,
    AttentionPlan,
    Packed,
    Planned,
    Scoring,
    masked_attention,
    visible,
)
from strop.models.layers.mixers import is_scanned
from strop.models.layers.prefix_tree import Mixer, States

Read: TypeAlias = Callable[[Tensor, Tensor, AttentionPlan], Tensor]  # tokens and positions [T] -> logits [T, V]

_WINDOWS = (
    "sliding_window",
    "sliding_window_size",
    "attention_chunk_size",
    "window_size",
    "keep_window_size",
    "floor_scale",
)
_NARROW = 3  # tokens; `floor_scale` is a stretch of positions whose queries grow alike
NUM_TOKENS = 11  # 8 of one sequence, and 3 of another that begins with the same 3
_PLACES = np.array([*range(8), *range(_NARROW), 8, 9, 10])
_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.05}


@torch.no_grad()
def what_differs(model: Any, read: Read, tokens: Tensor, context: int) -> str:
    """The way to compute `tokens` [11] that gives other logits than transformers alone; empty where none does."""
    with _narrow_windows(model, context):
        theirs, packed, grown = _ways(model, read, tokens)
    for ours, way in ((packed, "packed sequences"), (grown, "sequences that go on")):
        if not _is_close(theirs, ours):
            difference = float((ours.float() - theirs.float()).abs().max())
            return (
                f"{type(model).__name__} does not run right on {way}: its logits differ by {difference:.3g} from those "
                "it gives with transformers' own attention"
            )
    return ""


def _is_close(theirs: Tensor, ours: Tensor) -> bool:
    difference = float((ours.float() - theirs.float()).abs().max())
    return difference <= _TOLERANCE[ours.dtype] * max(1.0, float(theirs.float().abs().max()))


def _ways(model: Any, read: Read, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of both sequences [14, V]: transformers' own, of a packed pass, and of sequences that grow."""
    rows = torch.from_numpy(_PLACES).to(tokens.device)
    positions = torch.cat((torch.arange(8), torch.arange(_NARROW, 6))).to(tokens.device)
    plan = Packed((8, 6), tokens.device, _PLACES)
    packed = read(tokens, positions, plan)[rows]
    first = Growing(plan.routes)
    grown = [first.read(read, tokens, positions, range(_NARROW))]
    second = first.fork()
    for some in (range(3, 4), range(4, 5), range(5, 8)):
        grown.append(first.read(read, tokens, positions, some))
    grown += [grown[0], second.read(read, tokens, positions, range(8, 11))]
    model.set_attn_implementation("eager")
    theirs = []
    for own in (rows[:8], rows[8:]):
        with Planned(OwnForward(plan.routes, own)):
            theirs.append(model(input_ids=tokens[own].unsqueeze(0), use_cache=False).logits[0])
    model.set_attn_implementation(NAME)
    return torch.cat(theirs), packed, torch.cat(grown)


@contextmanager
def _narrow_windows(model: Any, context: int) -> Iterator[None]:
    """Every window and chunk that a sequence can outgrow is so narrow that a few tokens do."""
    owners = [model.config, model.config.get_text_config(), *model.modules()]
    kept = [(owner, name, getattr(owner, name, None)) for owner in owners for name in _WINDOWS]
    kept = [(*each, size) for *each, size in kept if isinstance(size, int) and _NARROW < size < context]
    try:
        for owner, name, _ in kept:
            setattr(owner, name, _NARROW)
        yield
    finally:
        for owner, name, size in kept:
            setattr(owner, name, size)


class OwnForward:
    """Forward pass of transformers' own over some tokens, through the experts that they took before."""

    def __init__(self, routes: Mapping[int, Tensor], rows: Tensor | Sequence[int] = ()) -> None:
        self.routes, self.rows = routes, rows

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scoring: Scoring) -> Tensor:
        raise RuntimeError("transformers attends by itself here")

    def mix(self, layer: int, mixer: Mixer, hidden: Tensor) -> Tensor:
        return mixer(hidden.unsqueeze(0), {})[0].squeeze(0)

    def route(self, layer: int, chosen: Tensor) -> Tensor:
        taken = self.routes[layer][self.rows]
        return taken if taken.shape == chosen.shape else chosen


class Growing(OwnForward):
    """One sequence that grows by some tokens at a time: its keys and states are kept."""

    def __init__(self, routes: Mapping[int, Tensor]) -> None:
        super().__init__(routes)
        self._keys: dict[int, tuple[Tensor, Tensor]] = {}
        self._states: dict[int, States] = {}

    def read(self, read: Read, tokens: Tensor, positions: Tensor, some: range) -> Tensor:
        """Logits of tokens that are appended."""
        self.rows = list(some)
        return read(tokens[self.rows], positions[self.rows], self)

    def fork(self) -> Growing:
        """Another sequence that begins alike."""
        other = Growing(self.routes)
        other._keys, other._states = dict(self._keys), dict(self._states)
        return other

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scoring: Scoring) -> Tensor:
        if layer in self._keys:
            key, value = (torch.cat(both) for both in zip(self._keys[layer], (key, value), strict=True))
        self._keys[layer] = key, value
        places = torch.arange(len(key), device=key.device)
        mask = visible(places[-len(query) :], places, scoring)
        query, key, value = (each.transpose(0, 1).unsqueeze(0) for each in (query, key, value))
        return masked_attention(query, key, value, mask, scoring).squeeze(0).transpose(0, 1)

    def mix(self, layer: int, mixer: Mixer, hidden: Tensor) -> Tensor:
        """Also finds mixers that read no state before several tokens: these go on by one token at a time."""
        states, several = self._states.get(layer, {}), hidden.unsqueeze(0)
        output, after = mixer(several, _copied(states))
        if len(hidden) > 1 and states and not mixer.module.is_stepwise:
            unread = {kind: torch.zeros_like(state) if is_scanned(kind) else state for kind, state in states.items()}
            if any(map(is_scanned, states)) and torch.equal(output, mixer(several, _copied(unread))[0]):
                mixer.module.is_stepwise = True
                output, after = mixer(several, _copied(states))
        self._states[layer] = after
        return output.squeeze(0)


def _copied(states: States) -> States:
    return {kind: state.clone() for kind, state in states.items()}
