"""Packed forward pass over whole sequences, in which shared prefixes are computed once.

Rollouts of a group have the same prompt and often share more: a prefix that segments share is computed once and read by
all of them, as in a trie. A segment's last token predicts nothing, so it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.kernels.attention import Varlen, moved
from strop.models.layers.attention import Packed
from strop.models.model import hidden_states
from strop.models.pictures import ReadArrays, merge_of, rope_positions
from strop.models.tokens.picture_words import spans_of
from strop.training.batch import Batch
from strop.training.machine.llama import LlamaForward
from strop.types import IntArray


class Sequences:
    """Segments of a packed batch [T], laid out once for any number of passes.

    `routes` [T, R] are the experts, from 1 on, of each token when it was sampled; 0 where unknown.
    """

    def __init__(
        self,
        tokens: Tensor,
        positions: Tensor,
        lengths: Sequence[int],
        device: torch.device | str,
        routes: Tensor | None = None,
        pictures: ReadArrays | None = None,
    ) -> None:
        self._pictures, self._segments = pictures, (tokens, lengths)
        words = _words(tokens, routes)
        order, sizes = _sorted(words, np.asarray(lengths, dtype=np.int64))
        ends = np.cumsum(sizes)
        is_read = np.ones(len(tokens), dtype=np.bool_)
        is_read[ends - 1] = False
        owners = _owners(words[order], ends - sizes, sizes)
        is_computed = is_read & (owners == np.arange(len(owners)))  # [T]
        places = (np.cumsum(is_computed) - 1)[owners]  # [T], among the computed
        kept = torch.from_numpy(order[is_computed])  # [U]
        self._tokens, self._positions = (moved(each.cpu()[kept], device) for each in (tokens, positions))
        self._kept = moved(kept, device)
        self._routes = None if routes is None else moved(routes.cpu()[kept].long() - 1, device)  # [U, R]
        found = np.empty_like(places)
        found[order] = np.where(is_read, places, 0)
        self.places = moved(torch.from_numpy(found), device)  # [T]
        self._read, self._read_places, self._device = (sizes - 1)[sizes > 1], places[is_read], device
        is_seen = pictures is not None and pictures.is_mutual and bool((tokens < 0).any())
        self._spans = spans_of(tokens.cpu().numpy()[order][is_read]) if is_seen else None

    @cached_property
    def _plan(self) -> Packed:
        plan = Packed(self._read, self._device, self._read_places, spans=self._spans)
        plan.taken = self._routes
        return plan

    @cached_property
    def _varlen(self) -> Varlen:
        return Varlen(self._read, self._read_places, self._device)

    @property
    def num_computed(self) -> int:
        return len(self._tokens)

    weights: Tensor | None = None  # every token counts once

    def before(self, rows: Tensor) -> Tensor:
        """Where the states lie in which these tokens were chosen: [R]."""
        return self.places.index_select(0, rows - 1)

    def check(self, batch: Batch, where: Tensor | None = None) -> None:
        """Every token but the first of a segment can be asked about."""

    def hidden_states(self, model: Any) -> Tensor:
        """[T, hidden]; those of each segment's last token mean nothing."""
        return self.computed(model).index_select(0, self.places)

    def computed(self, model: Any, fast_path: LlamaForward | None = None) -> Tensor:
        """[U, hidden], each state once, by the model or its fast forward; `places` says which is whose."""
        if fast_path is None:
            return hidden_states(model, self._tokens, self._turned(model), self._plan, pictures=self._pictures)
        plan = self._varlen if fast_path.takes_varlen(int(self._read.max(initial=0))) else self._plan
        return fast_path.hidden_states(self._tokens, self._positions, plan, self._routes)

    def _turned(self, model: Any) -> Tensor:
        """Positions [U] as heads turn by them; [3, U] where they do so by a token's place in its picture."""
        tokens, lengths = self._segments
        merge = merge_of(model.config)
        if self._pictures is None or not merge or not bool((tokens < 0).any()):
            return self._positions
        segments = np.split(tokens.cpu().numpy(), np.cumsum(lengths)[:-1])
        found = np.concatenate([rope_positions(each, merge, self._pictures) for each in segments], 1)
        return moved(torch.from_numpy(found), self._device)[:, self._kept]

    def computed_between(self, model: Any, others: Tensor, share: Tensor) -> Tensor:
        """The same, reading (1 - share) * own embedding + share * that of `others`; both [T]."""
        embed = model.get_input_embeddings()
        with torch.no_grad():
            part = share.index_select(0, self._kept).unsqueeze(1)
            mixed = torch.lerp(embed(self._tokens), embed(others.index_select(0, self._kept)), part)
        return hidden_states(model, self._tokens, self._positions, self._plan, mixed)


def _words(tokens: Tensor, routes: Tensor | None) -> IntArray:
    """Tokens, told apart by the experts they went through: a prefix is shared only where those are the same: [T]."""
    plain = tokens.cpu().numpy()
    if routes is None:
        return plain
    rows = np.concatenate((plain[:, None], routes.cpu().numpy().astype(np.int64)), 1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _sorted(tokens: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Tokens [T] and sizes of segments in alphabetical order, in which those that agree longest are neighbours."""
    ends = np.cumsum(sizes)
    text, width = tokens.astype(">i8").tobytes(), 8  # bytes compare as tokens do, and much faster
    words = [text[width * (end - size) : width * end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]
    turn = np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)
    sizes, starts = sizes[turn], (ends - sizes)[turn]
    return np.arange(len(tokens)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes), sizes


def _owners(tokens: IntArray, starts: IntArray, sizes: IntArray) -> IntArray:
    """For each token the first one with the same prefix, as far as a segment agrees with the one before it: [T]."""
    owners = np.arange(len(tokens))
    bounds = list(zip(starts.tolist(), sizes.tolist(), strict=True))
    for (before, size_before), (start, size) in pairwise(bounds):
        # the last token of a segment is not computed, so it cannot serve another
        longest = min(size_before - 1, size)
        common = _agree(tokens[before : before + longest], tokens[start : start + longest])
        owners[start : start + common] = owners[before : before + common]
    return owners


def _agree(one: NDArray[Any], other: NDArray[Any]) -> int:
    """How many leading elements are equal."""
    differs = one != other
    return int(differs.argmax()) if differs.any() else len(one)
