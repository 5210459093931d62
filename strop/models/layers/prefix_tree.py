"""Layers that keep a state over a tree of shared prefixes: siblings go on from it, and cost their own tokens.

A prefix that others go on from is computed to its end; what follows starts from the state there, through which
gradients flow. A branch less than 16 tokens behind another begins at that one: a few tokens computed twice are cheaper
than one more call of every layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from strop.types import IntArray

_MAX_WASTE = 1.25  # padded over real tokens within one block
_LEAST = 16  # tokens between two branches, and what one more call is worth


States: TypeAlias = Mapping[str, Tensor]  # of a layer by their kind, each [N, ...]; none: before the first token


class Mixer(Protocol):
    """Layer that keeps a state, as a function of tokens and of states, which it may write."""

    @property
    def module(self) -> Any: ...

    def __call__(self, hidden: Tensor, before: States) -> tuple[Tensor, States]:
        """[N, L, hidden] behind these states -> [N, L, hidden], and the states behind those."""
        ...


@dataclass(eq=False)
class _Node:
    """Tokens of a segment from `start` to `end`, behind the state at the end of another node."""

    segment: int
    start: int
    end: int
    source: _Node | None
    is_inner: bool = False  # others go on from its end
    row: int = -1  # of an inner one, among those of its level

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def level(self) -> int:
        return 0 if self.source is None else self.source.level + 1


@dataclass(frozen=True, eq=False)
class _Call:
    """Nodes of a level that go through a mixer at once."""

    count: int
    index: Tensor  # [count * length] tokens given to the network; the last of a shorter node is repeated
    sources: Tensor | None  # [count] rows among the states of the level before
    is_inner: bool


class PrefixTree:
    """Order in which a mixer computes segments that share prefixes; `places` as in `Packed`."""

    def __init__(self, sizes: IntArray, places: IntArray, device: torch.device | str) -> None:
        nodes = _nodes(sizes, places)
        self._starts, self._places, self._device = np.cumsum(sizes) - sizes, places, device
        self._inverse = np.empty(int(places.max(initial=-1)) + 1, dtype=np.int64)
        self._size, self._levels = 0, list[list[_Call]]()
        for level in range(max((node.level for node in nodes), default=-1) + 1):
            together = _together([node for node in nodes if node.level == level])
            self._levels.append([self._call(members) for members in together])
        self.inverse = torch.from_numpy(self._inverse).to(device)

    @property
    def cost(self) -> int:
        """Of a layer, in tokens."""
        return self._size + _LEAST * sum(map(len, self._levels))

    def mix(self, mixer: Mixer, hidden: Tensor) -> Tensor:
        """[T, hidden] -> [T, hidden]."""
        outputs, before = list[Tensor](), dict[str, Tensor]()
        for level in self._levels:
            after = list[States]()
            for call in level:
                given = hidden.index_select(0, call.index).view(call.count, -1, hidden.shape[-1])
                some = {} if call.sources is None else {k: v.index_select(0, call.sources) for k, v in before.items()}
                output, states = mixer(given, some)
                outputs.append(output.flatten(0, 1))
                after += [states] if call.is_inner else []
            before = {kind: torch.cat([states[kind] for states in after]) for kind in (after[0] if after else ())}
        return torch.cat(outputs).index_select(0, self.inverse)

    def _call(self, nodes: Sequence[_Node]) -> _Call:
        first = np.array([self._starts[node.segment] + node.start for node in nodes])[:, None]
        size = np.array([node.size for node in nodes])[:, None]
        column = np.arange(size.max())
        index = self._places[first + np.minimum(column, size - 1)]  # [count, length]
        is_real = column < size
        self._inverse[index[is_real]] = self._size + np.flatnonzero(is_real)
        self._size += index.size
        rows = [node.source.row for node in nodes if node.source is not None]
        sources = torch.tensor(rows, device=self._device) if rows else None
        return _Call(len(nodes), torch.from_numpy(index.ravel()).to(self._device), sources, nodes[0].is_inner)


def _together(nodes: Sequence[_Node]) -> Iterator[list[_Node]]:
    """Nodes of one level by calls: inner ones of equal length, whose states padding would spoil, and similar others."""
    inner = sorted((node for node in nodes if node.is_inner), key=lambda node: node.size)
    for row, node in enumerate(inner):
        node.row = row
    for size in dict.fromkeys(node.size for node in inner):
        yield [node for node in inner if node.size == size]
    others = [node for node in nodes if not node.is_inner]
    for members in similar([node.size for node in others]):
        yield [others[member] for member in members]


def _nodes(sizes: IntArray, places: IntArray) -> list[_Node]:
    """Each segment from its branch on, cut where others branch off."""
    starts = np.cumsum(sizes) - sizes
    first = np.unique(places, return_index=True)[1]  # of the tokens of segments, the one that brings each place
    shared, owners = _branches(sizes, starts, first[places])
    cuts: dict[int, set[int]] = {}
    for length, owner in zip(shared, owners, strict=True):
        cuts.setdefault(owner, set()).add(length)
    nodes = list[_Node]()
    inner: list[list[_Node]] = []  # of each segment
    begins: list[tuple[int, _Node | None]] = []
    for segment, size in enumerate(sizes.tolist()):
        at: tuple[int, _Node | None] = (0, None)
        if shared[segment]:
            owner = owners[segment]
            behind = [node for node in inner[owner] if node.end <= shared[segment]]
            at = (behind[-1].end, behind[-1]) if behind else begins[owner]
        begins.append(at)
        inner.append([])
        for end in sorted(cuts.get(segment, ())):
            if end - at[0] >= _LEAST:
                inner[segment].append(_Node(segment, at[0], end, at[1], is_inner=True))
                at = (end, inner[segment][-1])
        nodes += inner[segment]
        if max(at[0], shared[segment]) < size:
            start, source = at
            if size - start == 1 and source is not None:  # some write the state of a single token in place
                start, source = source.start, source.source
            nodes.append(_Node(segment, start, size, source))
    return nodes


def _branches(sizes: IntArray, starts: IntArray, firsts: IntArray) -> tuple[list[int], list[int]]:
    """How many first tokens of each segment earlier ones bring, and which of these brings the last of them."""
    segment_of = np.repeat(np.arange(len(sizes)), sizes)
    is_own = firsts == np.arange(len(firsts))
    shared, owners = [], []
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        own = is_own[start : start + size]
        shared.append(int(own.argmax()) if own.any() else size)
        owners.append(int(segment_of[firsts[start + shared[-1] - 1]]) if shared[-1] else -1)
    return shared, owners


def similar(lengths: Sequence[int]) -> list[list[int]]:
    """Members of each block, so that padding to the longest wastes little."""
    blocks: list[list[int]] = []
    real = 0
    for member in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        size = lengths[member]
        if blocks and (len(blocks[-1]) + 1) * size <= _MAX_WASTE * (real + size):
            blocks[-1].append(member)
            real += size
        else:
            blocks.append([member])
            real = size
    return blocks
