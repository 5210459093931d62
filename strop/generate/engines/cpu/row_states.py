"""States of layers that keep one, by rows of the CPU engine, and the order in which a step computes them.

Each row has the state behind its last computed token, and a snapshot at the last token of its prompt, from which
siblings, forks and later turns go on. Keys can be cut off anywhere, a state cannot.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.models.layers.attention import Packed
from strop.models.layers.mixers import mixers
from strop.models.layers.prefix_tree import Mixer, States
from strop.models.model import hidden_states
from strop.models.torch_setup import gpu_memory
from strop.types import IntArray

_SHARE = 0.5  # of free memory, that states may take: keys and activations need the rest


class RowStates:
    """States per layer and kind [2 * rows, ...]; an index says which are whose, so that rows swap at no cost."""

    def __init__(self, rows: int) -> None:
        self._kept: dict[int, dict[str, Tensor]] = {}  # by layer
        self._last, self._snapshot = np.arange(rows), np.arange(rows, 2 * rows)

    def of(self, layer: int, rows: IntArray) -> States:
        """Copies of the last ones."""
        return {kind: kept[self._last[rows]] for kind, kept in self._kept[layer].items()}

    def keep(self, layer: int, rows: IntArray, states: States) -> None:
        kept = self._kept.setdefault(layer, {})
        for kind, some in states.items():
            if kind not in kept:
                kept[kind] = some.new_zeros(2 * len(self._last), *some.shape[1:])
            kept[kind][self._last[rows]] = some

    def snapshot(self, layer: int, rows: IntArray) -> None:
        """Copy the last ones."""
        self._copied(self._last[rows], self._snapshot[rows], layer)

    def go_on(self, sources: IntArray, rows: IntArray, layer: int | None = None, from_snapshot: bool = True) -> None:
        """Rows go on from the snapshots, or from the last ones, of others."""
        self._copied((self._snapshot if from_snapshot else self._last)[sources], self._last[rows], layer)

    def swap(self, one: int, other: int) -> None:
        for index in (self._last, self._snapshot):
            index[[one, other]] = index[[other, one]]

    def _copied(self, source: IntArray, destination: IntArray, layer: int | None) -> None:
        if not len(source):
            return
        for some in self._kept.values() if layer is None else (self._kept[layer],):
            for kept in some.values():
                kept[destination] = kept[source]


@dataclass(frozen=True)
class Stretch:
    """Tokens that a step computes of a row: `count` from place `start` on, packed from `first` on."""

    row: int
    start: int
    count: int
    first: int
    snapshot: int  # of the row

    @property
    def reaches_snapshot(self) -> bool:
        return self.start <= self.snapshot <= self.start + self.count


@dataclass
class Wave:
    """Rows that go on by equally many tokens at once: right padding would spoil their states."""

    is_fresh: bool
    rows: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)  # rows from whose snapshots others go on,
    takers: list[int] = field(default_factory=list)  # these
    kept_before: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    tokens: Tensor = field(init=False)  # [N, count], places among the packed ones


def waves(stretches: Sequence[Stretch], sources: dict[int, int], device: torch.device) -> list[Wave]:
    """Stretches cut at snapshots, in an order in which whoever goes on from one, by `sources`, finds it there."""
    of_row = {each.row: each for each in stretches}

    def depth(row: int) -> int:
        return depth(sources[row]) + 1 if row in sources else 0

    found: dict[tuple[int, bool, int], Wave] = {}
    for row, each in of_row.items():
        cut = each.snapshot - each.start if each.reaches_snapshot and each.snapshot > each.start else each.count
        parts = [(0, cut), (cut, each.count - cut)] if cut < each.count else [(0, cut)]
        for later, (begin, count) in enumerate(parts):
            is_fresh = each.start + begin == 0
            wave = found.setdefault((depth(row) + later, is_fresh, count), Wave(is_fresh))
            wave.rows.append(row)
            wave.firsts.append(each.first + begin)
            if begin == 0 and row in sources:
                wave.sources.append(sources[row])
                wave.takers.append(row)
            if begin == 0 and each.snapshot == each.start > 0:
                wave.kept_before.append(row)
            if each.reaches_snapshot and each.snapshot == each.start + begin + count:
                wave.kept.append(row)
    for (_, _, count), wave in found.items():
        places = np.array(wave.firsts)[:, None] + np.arange(count)
        wave.tokens = torch.from_numpy(places).to(device)
    return [found[key] for key in sorted(found)]


class _Sized(Packed):
    """Forward pass that counts the bytes of states."""

    size = 0

    def mix(self, layer: int, mixer: Mixer, hidden: Tensor) -> Tensor:
        output, states = mixer(hidden.unsqueeze(0), {})
        self.size += sum(each.nbytes for each in states.values())
        return output.squeeze(0)


@torch.no_grad()
def state_bytes(model: Any) -> int:
    """Of one sequence over all layers."""
    if not mixers(model):
        return 0
    token = torch.zeros(1, dtype=torch.int64, device=model.get_input_embeddings().weight.device)
    plan = _Sized([1], token.device)
    hidden_states(model, token, token, plan)
    return plan.size


def check_room(model: Any, rows: int, device: str) -> None:
    """Refuse more rows than there is memory for the states of."""
    each = 2 * state_bytes(model)
    is_gpu = torch.device(device).type == "cuda"
    weights = sum(parameter.nbytes for parameter in model.parameters())
    free = gpu_memory(device)[0] if is_gpu else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") - weights
    if rows * each > (most := max(int(_SHARE * free), 0)):
        raise ConfigurationError(
            f"layers of {type(model).__name__} keep states of {each / 2**20:.3g} MB a row: rows={rows} need "
            f"{rows * each / 2**30:.3g} GB, {most / 2**30:.3g} GB may be taken of {device}: rows={most // each} fit"
        )
