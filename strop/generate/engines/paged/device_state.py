"""GPU-resident state of decoding: slots that each produce one token per step without host synchronization.

All tensors of a step have fixed addresses, so that a whole step is one CUDA graph; sampling, end-of-sequence checks and
logprobs stay on the device. Host work per step does not grow with the number of slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.generate.engines.cpu.torch_engine import copy_weights
from strop.generate.engines.paged.block_manager import bucket, padded, runs_of
from strop.generate.engines.paged.draft_model import Draft
from strop.generate.engines.paged.paged_llama import Cache, PagedLlama
from strop.generate.engines.paged.speculative_step import Ahead
from strop.kernels.decode import PAGE, DecodeOperations, Sheet, TokenPlaces
from strop.kernels.sampling.sample_token import Draws
from strop.types import FloatArray, IntArray, Sampling


@dataclass(frozen=True, eq=False)
class Seat:
    """Request data written to a slot."""

    slot: int
    context: IntArray  # [N]; all but the last token's keys are computed before the first step
    limit: int  # tokens of the context at its longest
    key: np.uint64
    sampling: Sampling
    pages: Sequence[int]
    start: int  # tokens whose keys are there already

    @property
    def lacks(self) -> int:
        return len(self.context) - 1 - self.start  # tokens whose keys are computed first


@dataclass(frozen=True, eq=False)
class Look:
    """Asynchronous copy of slot states to the host, complete once `event` has passed."""

    order: IntArray  # [B]
    is_active: Tensor  # [B]
    lengths: Tensor  # [B]
    event: Any = None

    @property
    def is_here(self) -> bool:
        return self.event is None or bool(self.event.query())


class Board:
    """Slots on a device; the last one is a dummy that pads the rows of a step."""

    def __init__(
        self, llama: PagedLlama, operations: DecodeOperations, cache: Cache, slots: int, context: int, ends: IntArray
    ) -> None:
        self._llama, self._operations, self._cache = llama, operations, cache
        self.context, self._idle = context, slots
        self.device = cache.keys.device

        def whole(fill: float, dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.full((slots + 1, *shape), fill, dtype=dtype, device=self.device)

        self.sheet = Sheet(
            tokens=whole(0, torch.int32, context),
            logprobs=whole(0, torch.float32, context),
            versions=whole(0, torch.int32, context),
            lengths=whole(1, torch.int32),
            limits=whole(1, torch.int32),
            is_active=whole(False, torch.bool),
            version=torch.zeros(1, dtype=torch.int32, device=self.device),
            ends=torch.from_numpy(ends).to(self.device),
        )
        self.tables = whole(0, torch.int32, -(-context // PAGE))
        self.draws = Draws(
            temperature=whole(1, torch.float32),
            top_k=whole(0, torch.int64),
            top_p=whole(1, torch.float32),
            keys=whole(0, torch.int64),
        )
        self.order = torch.full((slots,), slots, dtype=torch.int64, device=self.device)
        self._last: IntArray = np.zeros(0, np.int64)
        self.ahead: Ahead | None = None
        self._graphs: dict[tuple[int, *tuple[bool, ...]], Any] = {}  # by rows, is_guessed, is_truncated
        self._is_cuda = self.device.type == "cuda"
        self._pool: Any = torch.cuda.graph_pool_handle() if self._is_cuda else None
        self.stream: Any = _stream(self.device, -1) if self._is_cuda else None
        self._copies: Any = _stream(self.device, 0) if self._is_cuda else None

    @property
    def most(self) -> int:
        """Tokens that a slot may write in one step."""
        return 1 if self.ahead is None else self.ahead.draft.tokens + 1

    def guess_with(self, draft: Draft) -> None:
        """From here on several tokens a step where they are guessed right."""
        self.ahead = Ahead(draft, self._llama, self._operations, self.sheet, self.tables, self.draws)

    def rest(self) -> None:
        """Give the room for keys back, where it can be: nobody is seated, and no key will be read again."""
        if self._cache.place is not None:
            self._cache.place.give_back()

    def renew(self, source: Mapping[str, Tensor], weights: Mapping[str, Tensor], version: int) -> None:
        """New weights in place of the old ones, between two steps."""
        if self.stream is not None:  # whoever made the weights, and whoever changes them next
            self.stream.wait_stream(torch.cuda.default_stream())
        copy_weights(source, weights)
        self.sheet.version.fill_(version)
        if self.stream is not None:
            torch.cuda.default_stream().wait_stream(self.stream)
        if self.ahead is not None:
            self.ahead.forget()

    def teach(self, slot: int, length: int, newest: int, beyond: int) -> None:
        """Let the draft learn from the newest ones of so many tokens of a slot, `beyond` before its last, if any."""
        if self.ahead is not None:
            with self.turn():
                self.ahead.take(slot, length, newest, beyond)

    # ---- what the host does now and then

    @torch.inference_mode()
    def seat(self, seats: Sequence[Seat]) -> None:
        """Put requests into their slots; they write from the next step on."""
        if self._cache.place is not None:
            self._cache.place.take()
        rows = self._put(np.array([seat.slot for seat in seats]))
        tokens = padded([seat.context for seat in seats])
        self.sheet.tokens[:, : tokens.shape[1]].index_copy_(0, rows, self._put(tokens))
        self.hold({seat.slot: seat.pages for seat in seats})
        heat = [seat.sampling for seat in seats]
        for target, values in (
            (self.sheet.lengths, np.array([len(seat.context) for seat in seats], np.int32)),
            (self.sheet.limits, np.array([seat.limit for seat in seats], np.int32)),
            (self.draws.temperature, np.array([each.temperature for each in heat], np.float32)),
            (self.draws.top_k, np.array([each.top_k for each in heat], np.int64)),
            (self.draws.top_p, np.array([each.top_p for each in heat], np.float32)),
            (self.draws.keys, np.array([seat.key for seat in seats], np.uint64).view(np.int64)),
        ):
            target.index_copy_(0, rows, self._put(values))
        self.sheet.is_active.index_fill_(0, rows, True)

    @torch.inference_mode()
    def hold(self, pages: Mapping[int, Sequence[int]]) -> None:
        """Slots hold these pages, in order."""
        tables = padded(list(pages.values()))
        self.tables[:, : tables.shape[1]].index_copy_(0, self._put(np.array(list(pages))), self._put(tables))

    @torch.inference_mode()
    def prefill(self, pieces: Sequence[tuple[int, int, IntArray]]) -> None:
        """Compute the keys of tokens that stand in (slot, from position): they may build on each other in order."""
        counts = np.array([len(tokens) for _, _, tokens in pieces])
        slots = np.repeat([slot for slot, _, _ in pieces], counts)
        positions = np.concatenate([np.arange(start, start + len(tokens)) for _, start, tokens in pieces])
        tokens = np.concatenate([tokens for _, _, tokens in pieces])
        packed = self._put(np.stack((slots, positions, tokens)).astype(np.int32))
        runs = self._put(runs_of(np.array([start for _, start, _ in pieces]), counts))
        where = TokenPlaces(packed[0], packed[1], self.tables, runs)
        states = self._llama.states(packed[2], where, self._cache)
        if self.ahead is not None:
            last = self._put(np.cumsum(counts) - 1)  # of each piece: guesses begin there
            self.ahead.keep(packed[0][last], packed[1][last], states[last])

    @torch.inference_mode()
    def empty(self, slots: Sequence[int]) -> None:
        """These slots write no more."""
        self.sheet.is_active.index_fill_(0, self._put(np.array(slots)), False)

    @torch.inference_mode()
    def advance(self, order: IntArray, steps: int, is_truncated: bool) -> Look:
        """Let these slots write up to `steps` tokens each, and say where to look afterwards."""
        rows = bucket(len(order), len(self.order))
        if not np.array_equal(order, self._last):
            padded = np.full(rows, self._idle)
            padded[: len(order)] = order
            self.order[:rows].copy_(self._put(padded))
            self._last = order
        is_guessed = self.ahead is not None and len(order) <= self.ahead.draft.rows
        for _ in range(steps):
            if self._is_cuda:
                self._graph(rows, is_guessed, is_truncated).replay()
            else:
                self._step(self.order[:rows], is_guessed, is_truncated)
        return self._look(order)

    @torch.inference_mode()
    def read(self, slots: Sequence[int], after: Look | None) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
        """Tokens, logprobs and versions [N, longest] and lengths [N] of slots that stand still since `after`."""
        if self._is_cuda and after is not None:
            self._copies.wait_event(after.event)
            with torch.cuda.stream(self._copies):  # beside the steps that run meanwhile
                return self._read(slots)
        return self._read(slots)

    def turn(self) -> AbstractContextManager[Any]:
        """Whatever is done within is done in order, after what was done before; others' work runs beside it."""
        return torch.cuda.stream(self.stream) if self._is_cuda else nullcontext()

    def routes(self, pages: Sequence[int], length: int) -> NDArray[np.int16] | None:
        """Experts of the first tokens in these pages; None where the model has none."""
        with self.turn():
            return self._cache.routes_of(pages, length)

    # ---- one step

    def _step(self, slots: Tensor, is_guessed: bool, is_truncated: bool) -> None:
        lengths = self.sheet.lengths[slots]  # on a GPU `index_select` looks up one of up to 16 after the other
        at = lengths - 1
        tokens = self.sheet.tokens[slots, at]
        if self.ahead is not None and is_guessed:
            return self.ahead.step(slots, tokens, self._cache, is_truncated)
        where = TokenPlaces(slots.int(), at, self.tables)
        states = self._llama.states(tokens, where, self._cache)
        if self.ahead is not None:
            self.ahead.keep(slots, at, states)
        drawn = self._operations.draw(self._llama.scores(states), self.draws.of(slots), lengths, is_truncated)
        return self._operations.write(self.sheet, slots, *drawn)

    def _graph(self, rows: int, *how: bool) -> Any:
        """The step for so many rows, captured when first asked for."""
        if (rows, *how) not in self._graphs:
            slots = self.order[:rows]
            kept = slots.clone()
            slots.fill_(self._idle)  # a warm-up must not write anywhere
            self._step(slots, *how)  # kernels are compiled and libraries opened outside of the capture
            graph = torch.cuda.CUDAGraph()
            # another thread may train meanwhile: its allocations must not break the capture
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            self._step(slots, *how)
            graph.capture_end()
            self._graphs[rows, *how] = graph
            slots.copy_(kept)
        return self._graphs[rows, *how]

    # ---- between host and device

    def _look(self, order: IntArray) -> Look:
        slots = self.order[: len(order)]
        is_active, lengths = self.sheet.is_active.index_select(0, slots), self.sheet.lengths.index_select(0, slots)
        if not self._is_cuda:
            return Look(order, is_active, lengths)
        seen = [torch.empty(each.shape, dtype=each.dtype, pin_memory=True) for each in (is_active, lengths)]
        for target, source in zip(seen, (is_active, lengths), strict=True):
            target.copy_(source, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        return Look(order, seen[0], seen[1], event)

    def _read(self, slots: Sequence[int]) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
        rows = self._put(np.array(slots))
        lengths = self.sheet.lengths.index_select(0, rows).cpu().numpy().astype(np.int64)
        width = int(lengths.max())
        tokens, logprobs, versions = (
            each[:, :width].index_select(0, rows).cpu().numpy()
            for each in (self.sheet.tokens, self.sheet.logprobs, self.sheet.versions)
        )
        return tokens.astype(np.int64), logprobs, versions.astype(np.int64), lengths

    def _put(self, array: Any) -> Tensor:
        there = torch.from_numpy(array)
        if not self._is_cuda:
            return there
        return there.pin_memory().to(self.device, non_blocking=True)  # from pageable memory the host would wait


def _stream(device: torch.device, priority: int) -> Any:
    return torch.cuda.Stream(device, priority=priority)  # type: ignore[no-untyped-call]
