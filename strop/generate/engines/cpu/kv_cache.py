"""KV cache of the CPU engine, and the attention plan that reads and writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from strop.generate.engines.cpu.row_states import RowStates, Stretch, Wave, waves
from strop.kernels.cpu.large_pages import in_large_pages
from strop.models.layers.attention import Scoring, masked_attention, visible
from strop.models.layers.prefix_tree import Mixer
from strop.models.tokens.picture_words import spans_of
from strop.types import IntArray

_MAX_WASTE = 1.25  # padded over real queries within one block
_ROUTES = -1  # where experts lie among the layers
_BLOCK_COST = 512  # what one more attention call costs, counted in keys read


class KeyValues:
    """Keys and values, per layer [rows, heads, capacity, head size], so that a step reads its rows as a view."""

    def __init__(self, rows: int, capacity: int) -> None:
        self.rows = rows
        self.capacity = capacity
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}
        self.states = RowStates(rows)

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer; shaped like the first ones [T, heads, head size] it is shown."""
        if index not in self._layers:
            # zeros, because a masked key is multiplied by 0, and 0 times what lies in fresh memory may be NaN
            self._layers[index] = (self._zeros(key), self._zeros(value))
        return self._layers[index]

    def routes(self, row: int, length: int, computed: int) -> IntArray | None:
        """The experts of a row's tokens [length, R], 0 where they are not computed; None: there are no experts."""
        if _ROUTES not in self._layers:
            return None
        kept = self._layers[_ROUTES][0][row, 0, :computed].cpu().numpy()
        return np.concatenate((kept[:length], np.zeros((max(length - computed, 0), kept.shape[1]), kept.dtype)))

    def _zeros(self, like: Tensor) -> Tensor:
        return in_large_pages(like.new_empty(self.rows, like.shape[1], self.capacity, like.shape[2])).zero_()

    def grow(self, capacity: int) -> None:
        """Make room for longer sequences."""
        old, self.capacity = self.capacity, capacity
        for index, pair in self._layers.items():
            key, value = map(self._zeros, (t[0].transpose(0, 1) for t in pair))
            key[:, :, :old], value[:, :, :old] = pair
            self._layers[index] = (key, value)

    def copy(self, source: int, destination: int, length: int) -> None:
        for pair in self._layers.values():
            for tensor in pair:
                tensor[destination, :, :length] = tensor[source, :, :length]

    def swap(self, one: int, other: int, length: int) -> None:
        self.states.swap(one, other)
        for pair in self._layers.values():
            for tensor in pair:
                kept = tensor[one, :, :length].clone()
                tensor[one, :, :length] = tensor[other, :, :length]
                tensor[other, :, :length] = kept


@dataclass(frozen=True)
class Share:
    """Prefix sharing: rows copy the first `length` keys of another row, the last of which this very step computes."""

    source: int
    destinations: list[int]
    length: int


@dataclass
class Block:
    """Attention block: `count` rows of `width` queries each over the first `length` keys."""

    rows: slice | Tensor
    count: int
    width: int
    length: int
    positions: Tensor  # [count, width]
    gather: Tensor | None = None  # [count * width] packed tokens; None: all of them, in order
    real: Tensor | None = None  # which of count * width are not padding
    packed: Tensor | None = None  # the packed tokens they are
    spans: Tensor | None = None  # [count, length] the picture of each key, where all of its tokens see each other
    _masks: dict[tuple[int | None, int | None, int], Tensor] = field(default_factory=dict)  # by window and chunk

    def attend(self, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring) -> Tensor:
        """[T, H, D] -> [count * width, H, D]."""
        heads, size = query.shape[1:]
        keys, values = keys[self.rows, :, : self.length], values[self.rows, :, : self.length]
        query = query if self.gather is None else query[self.gather]
        if self.width > 1:
            query = query.view(self.count, self.width, heads, size).transpose(1, 2)
            output = masked_attention(query, keys, values, self._mask(scoring, query.dtype), scoring)
            return output.transpose(1, 2).reshape(self.count * self.width, heads, -1)
        # the queries of a group share their head's keys: let them be the query length, so that no key is repeated
        query = query.view(self.count, keys.shape[1], -1, size)
        if scoring.cap is None and scoring.sinks is None and query.dtype == torch.float32:
            output = self._attend_once(query, keys, values, scoring)
        else:
            output = masked_attention(query, keys, values, self._mask(scoring, query.dtype), scoring)
        return output.reshape(self.count, heads, -1)

    def _attend_once(self, query: Tensor, keys: Tensor, values: Tensor, scoring: Scoring) -> Tensor:
        """One query position per row: with so few scores, plain multiplications are quicker than a fused kernel."""
        query, keys, values = (tensor.flatten(0, 1) for tensor in (query, keys, values))  # views
        bias = self._mask(scoring, query.dtype, repeats=len(query) // self.count)
        scores = torch.baddbmm(bias, query, keys.transpose(1, 2), alpha=scoring.scale)
        return torch.bmm(scores.softmax(-1), values)

    def _mask(self, scoring: Scoring, dtype: torch.dtype, repeats: int = 0) -> Tensor:
        """To be added to scores: [count, 1, width, length], or [count * repeats, 1, length] for each head by itself.

        Made once per step; a mask of booleans would be converted in every layer.
        """
        reach = scoring.window, scoring.chunk, repeats  # attention with sinks takes none repeated
        if reach not in self._masks:
            index = torch.arange(self.length, device=self.positions.device)
            spans = None if self.spans is None else (self.spans.gather(1, self.positions), self.spans)
            seen = visible(self.positions, index, scoring, spans).unsqueeze(1)  # [count, 1, width, length]
            mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -torch.inf)
            self._masks[reach] = mask.squeeze(1).repeat_interleave(repeats, 0) if repeats else mask
        return self._masks[reach]


@dataclass(eq=False)
class Cached:
    """Attention plan of one engine step: writes new keys, shares prefixes, then attends within each row."""

    memory: KeyValues
    rows: Tensor  # [T]
    positions: Tensor  # [T]
    shares: Sequence[Share]
    make_blocks: Callable[[], list[Block]]
    stretches: Sequence[Stretch] = ()  # where layers keep a state
    chosen: dict[int, Tensor] = field(default_factory=dict)  # experts [T, k], by layer

    @cached_property
    def blocks(self) -> list[Block]:
        """Not made for a forward pass that reads rows one by one."""
        return self.make_blocks()

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scoring: Scoring) -> Tensor:
        keys, values = self._written(layer, key, value)
        if len(self.blocks) == 1 and self.blocks[0].gather is None:
            return self.blocks[0].attend(query, keys, values, scoring)
        output = query.new_empty(*query.shape[:2], values.shape[-1])
        for block in self.blocks:
            output[block.packed] = block.attend(query, keys, values, scoring)[block.real]
        return output

    @cached_property
    def waves(self) -> list[Wave]:
        sources = {row: share.source for share in self.shares for row in share.destinations}
        return waves(self.stretches, sources, self.positions.device)

    def mix(self, layer: int, mixer: Mixer, hidden: Tensor) -> Tensor:
        """Each row from its state on."""
        output, states = torch.empty_like(hidden), self.memory.states
        for wave in self.waves:
            rows = np.array(wave.rows)
            states.go_on(np.array(wave.sources, np.int64), np.array(wave.takers, np.int64), layer)
            states.snapshot(layer, np.array(wave.kept_before, np.int64))
            output[wave.tokens], after = mixer(hidden[wave.tokens], {} if wave.is_fresh else states.of(layer, rows))
            states.keep(layer, rows, after)
            states.snapshot(layer, np.array(wave.kept, np.int64))
        return output

    def route(self, layer: int, chosen: Tensor) -> Tensor:
        self.chosen[layer] = chosen
        return chosen

    def keep(self, routes: Tensor) -> None:
        """Note which experts the tokens went through [T, R]: beside their keys, which go wherever those go."""
        self._written(_ROUTES, routes.unsqueeze(1), routes.unsqueeze(1)[..., :0])

    def _written(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self.memory.layer(layer, key, value)
        keys.transpose(1, 2)[self.rows, self.positions] = key  # side by side, indices are quicker than around a slice
        values.transpose(1, 2)[self.rows, self.positions] = value
        for share in self.shares:
            for tensor in (keys, values):
                tensor[share.destinations, :, : share.length] = tensor[share.source, :, : share.length]
        return keys, values


def decode_blocks(rows: IntArray, positions: IntArray, num_packed: int, device: torch.device) -> list[Block]:
    """Blocks for one query per row, the i-th packed token belonging to `rows[i]` (ascending)."""
    return [
        _view(rows[part], positions[part], np.arange(part.start, part.stop), num_packed, device)
        for part in similar_rows(rows, positions + 1)
    ]


def similar_rows(rows: IntArray, lengths: IntArray) -> list[slice]:
    """Cut rows (ascending) where that saves most, while it saves more keys than one more attention call costs.

    A block reads all its rows, and those between them, as far as the longest.
    """
    parts, uncut = [], [(0, len(rows))]
    while uncut:
        first, last = uncut.pop()
        cut = first + _best_cut(rows[first:last], lengths[first:last])
        if cut > first:
            uncut += [(cut, last), (first, cut)]
        else:
            parts.append(slice(first, last))
    return parts


def keys_read(rows: IntArray, lengths: IntArray) -> int:
    """What a step's attention costs over these rows, one more call counted in keys too."""
    parts = similar_rows(rows, lengths)
    return sum(_BLOCK_COST + int(_span(rows[part]) * lengths[part].max()) for part in parts)


def _best_cut(rows: IntArray, lengths: IntArray) -> int:
    """How many rows to take off the front; 0: none."""
    whole = _span(rows) * int(lengths.max())
    if whole - int(lengths.sum()) <= _BLOCK_COST:
        return 0
    front, back = np.maximum.accumulate(lengths)[:-1], np.maximum.accumulate(lengths[::-1])[-2::-1]
    cost = (rows[:-1] - rows[0] + 1) * front + (rows[-1] - rows[1:] + 1) * back
    cut = int(cost.argmin())
    return cut + 1 if cost[cut] + _BLOCK_COST < whole else 0


def _span(rows: IntArray) -> int:
    return int(rows[-1] - rows[0]) + 1


def _view(rows: IntArray, positions: IntArray, packed: IntArray, num_packed: int, device: torch.device) -> Block:
    first, span = int(rows[0]), _span(rows)
    spread = np.zeros(span, dtype=np.int64)
    spread[rows - first] = positions
    where = slice(first, first + span)
    block = Block(where, span, 1, int(positions.max()) + 1, _tensor(spread, device).unsqueeze(1))
    if not span == len(rows) == num_packed:
        gather = np.zeros(span, dtype=np.int64)  # a row without a query computes the first one's, and is dropped
        gather[rows - first] = packed
        block.gather, block.real, block.packed = (_tensor(index, device) for index in (gather, rows - first, packed))
    return block


def prefill_blocks(
    rows: IntArray, starts: IntArray, counts: IntArray, offset: int, device: torch.device, tokens: IntArray | None
) -> list[Block]:
    """Blocks for rows with several new tokens each, packed one after the other from `offset` on.

    With `tokens` [rows, capacity] those of a picture see each other.
    """
    firsts, blocks = offset + np.cumsum(counts) - counts, list[Block]()
    for some in _similar(counts):
        block, ends = _padded(rows[some], starts[some], counts[some], firsts[some], device), (starts + counts)[some]
        if tokens is not None and (known := tokens[rows[some], : block.length]).min() < 0:
            is_known = np.arange(block.length) < ends[:, None]  # behind are those of earlier requests
            block.spans = _tensor(np.where(is_known, spans_of(known), -1), device)
        blocks.append(block)
    return blocks


def _padded(rows: IntArray, starts: IntArray, counts: IntArray, firsts: IntArray, device: torch.device) -> Block:
    width = int(counts.max())
    column = np.minimum(np.arange(width), counts[:, None] - 1)  # padding repeats a row's last query
    gather = firsts[:, None] + column
    is_real = np.arange(width) < counts[:, None]
    positions = starts[:, None] + column
    where = slice(int(rows[0]), int(rows[0]) + 1) if len(rows) == 1 else _tensor(rows, device)
    block = Block(where, len(rows), width, int((starts + counts).max()), _tensor(positions, device))
    block.gather = _tensor(gather.ravel(), device)
    block.real = _tensor(np.flatnonzero(is_real.ravel()), device)
    block.packed = _tensor(gather[is_real], device)
    return block


def _similar(counts: IntArray) -> list[IntArray]:
    """Members of each block, so that padding to the longest wastes little."""
    order = np.argsort(counts, kind="stable")
    blocks: list[IntArray] = []
    first, real = 0, 0
    for place, member in enumerate(order):
        real += int(counts[member])
        if (place + 1 - first) * int(counts[member]) > _MAX_WASTE * real:
            blocks.append(order[first:place])
            first, real = place, int(counts[member])
    return [*blocks, order[first:]]


def _tensor(array: IntArray, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device)
