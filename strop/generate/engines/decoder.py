"""The synchronous heart of the torch engine: rows that each advance by one token per forward pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from strop.errors import NumericsError
from strop.generate.engines.cache import (
    Block,
    Cached,
    KeyValues,
    Share,
    decode_blocks,
    keys_read,
    prefill_blocks,
)
from strop.generate.engines.random import as_key, uniforms
from strop.generate.engines.rows import Rows
from strop.generate.engines.sampling import draw
from strop.models.model import context_length, logits
from strop.types import IntArray, Sampling

_SMALLEST = 64  # capacity to start with; a multiple keeps every row's keys aligned
_MAX_HOLES = 1.25  # rows spanned over rows active before they are moved together
_SWAP_COST = 128  # keys that lining up must save a step for each swap: what it costs, over the steps it lasts


class Asked(Protocol):
    """What a request must say."""

    prompt: IntArray
    sampling: Sampling
    key: int


Request = TypeVar("Request", bound=Asked)


@dataclass
class Work:
    """What one step computes: for each row, tokens from `starts` on, `counts` of them."""

    budget: int
    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)

    def share(self, source: int, destination: int, length: int) -> None:
        last = self.shares[-1] if self.shares else None
        if last and (last.source, last.length) == (source, length):
            last.destinations.append(destination)
        else:
            self.shares.append(Share(source, [destination], length))


class Decoder(Generic[Request]):
    """Rows, their keys, and the forward pass over what they lack."""

    def __init__(
        self,
        model: Any,
        forward: Callable[[Tensor, Tensor, Cached], Tensor],
        num_rows: int,
        step_tokens: int,
        reads_alone: bool = False,
    ) -> None:
        self._model = model
        self._forward = forward
        self._step_tokens = step_tokens  # bounds the memory of one forward pass
        self._reads_alone = reads_alone  # each row by itself, so that it does not matter which lie together
        self._device = next(model.parameters()).device
        self.context = context_length(model)
        self.rows = Rows(num_rows, _SMALLEST)
        self.memory = KeyValues(num_rows, _SMALLEST)
        self.owners: list[Request | None] = [None] * num_rows
        self._urgent = np.empty(0, dtype=self.rows.key.dtype)  # keys that nothing else may hold up
        self._epoch = 0
        self._tick = 0
        self.num_generated = 0  # tokens sampled
        self.num_prefilled = 0  # tokens computed that were not just sampled
        self.num_reused = 0  # tokens whose keys another request, or an earlier turn, had left

    # ---- what the engine asks

    def release(self, row: int) -> None:
        """The row's request leaves; its keys stay for whoever has the same prefix."""
        self.rows.is_active[row] = False
        self.rows.used[row] = self._tick
        self.owners[row] = None

    def holds(self, key: int) -> bool:
        """Whether a free row still has what this key's last turn left."""
        rows = self.rows
        return bool(((rows.key == as_key(key)) & ~rows.is_active & (rows.computed > 0)).any())

    def hurry(self, keys: Sequence[int]) -> None:
        """Until all rows of these keys are done, compute no others."""
        self._urgent = np.array([as_key(key) for key in keys], dtype=self.rows.key.dtype)

    def renew(self, keep_active: bool) -> None:
        """The weights changed: no key from before may be shared, and active rows recompute theirs unless kept."""
        self._epoch += 1
        self.forget()
        if not keep_active:
            self.rows.computed[:] = 0
            self.rows.epoch[:] = self._epoch

    def forget(self) -> None:
        """Free rows are as good as new, so that what comes next does not depend on what was before."""
        self.rows.computed[~self.rows.is_active] = 0
        self.rows.used[:] = 0
        self._tick = 0

    @torch.inference_mode()
    def step(self, queue: deque[Request], version: int) -> IntArray:
        """Admit what fits, compute what is missing, and append a token to every row that is complete: those rows."""
        self._tick += 1
        if not self._reads_alone:
            self._move_together()
            self._line_up()
        work = self._plan(queue)
        rows, starts, counts = (np.array(part, dtype=np.int64) for part in (work.rows, work.starts, work.counts))
        self._make_room(int(self.rows.length[rows].max()) + 1)
        hidden, last = self._compute(rows, starts, counts, work.shares)
        self.rows.computed[rows] = starts + counts
        is_complete = starts + counts == self.rows.length[rows]
        complete: IntArray = rows[is_complete]
        if len(complete):
            self._append(complete, logits(self._model, hidden[self._tensor(last[is_complete])]), version)
        return complete

    # ---- which tokens

    def _plan(self, queue: deque[Request]) -> Work:
        rows = self.rows
        rows.planned[:] = rows.computed
        active = rows.active
        if len(self._urgent):
            urgent = active[np.isin(rows.key[active], self._urgent)]
            if len(urgent):
                active, queue = urgent, deque()
        missing = rows.length[active] - rows.computed[active]
        writing = active[missing == 1]
        work = Work(
            self._step_tokens - len(writing), writing.tolist(), rows.computed[writing].tolist(), [1] * len(writing)
        )
        for row in active[missing > 1].tolist():
            if work.budget > 0:
                self._resume(row, work)
        while queue and rows.num_free and work.budget > 0:
            self._admit(queue[0], work)
            queue.popleft()  # only now: where admission fails, somebody must still know who waits
        return work

    def _resume(self, row: int, work: Work) -> None:
        """Go on with a row whose keys went stale, or whose prompt was too long for one step."""
        start = int(self.rows.computed[row])
        if start == 0:
            source, start = self.rows.longest_prefix(self.rows.tokens[row, : self.rows.length[row]], self._epoch)
            self._inherit(source, row, start, work)
        self._take(row, start, work)

    def _admit(self, request: Request, work: Work) -> None:
        rows = self.rows
        self._make_room(len(request.prompt) + 1)
        source, common = rows.longest_prefix(request.prompt, self._epoch)
        is_continued = not rows.is_active[source] and 0 < common == rows.computed[source]
        row = source if is_continued else rows.least_recent()
        if common:
            rows.used[source] = self._tick
        rows.admit(row, request.prompt, request.sampling, as_key(request.key), self.context)
        rows.epoch[row] = self._epoch
        self.owners[row] = request
        self._inherit(source, row, common, work)
        self._take(row, common, work)

    def _inherit(self, source: int, row: int, length: int, work: Work) -> None:
        """Let a row begin with the first keys of another."""
        self.num_reused += length
        is_there = length <= self.rows.computed[source]
        if source != row and length:
            if is_there:
                self.memory.copy(source, row, length)
            else:
                work.share(source, row, length)
        # what is shared during the step is not there yet: nobody may copy it before
        self.rows.computed[row] = length if is_there else 0

    def _take(self, row: int, start: int, work: Work) -> None:
        count = min(int(self.rows.length[row]) - start, work.budget)
        work.rows.append(row)
        work.starts.append(start)
        work.counts.append(count)
        work.budget -= count
        self.num_prefilled += count
        self.rows.planned[row] = start + count

    # ---- one forward pass

    def _compute(
        self, rows: IntArray, starts: IntArray, counts: IntArray, shares: list[Share]
    ) -> tuple[Tensor, IntArray]:
        """Hidden states of all packed tokens [T, hidden], and where the last token of each row is [N]."""
        single = np.flatnonzero(counts == 1)
        single = single[np.argsort(rows[single], kind="stable")]
        several = np.flatnonzero(counts > 1)
        order = np.concatenate((single, several))
        packed_rows = np.repeat(rows[order], counts[order])  # [T]
        ends = np.cumsum(counts[order])
        positions = np.arange(ends[-1]) + np.repeat(starts[order] - ends + counts[order], counts[order])  # [T]

        def blocks() -> list[Block]:
            made = decode_blocks(rows[single], starts[single], len(positions), self._device) if len(single) else []
            if len(several):
                made += prefill_blocks(rows[several], starts[several], counts[several], len(single), self._device)
            return made

        where, at = self._tensor(packed_rows), self._tensor(positions)
        tokens = self._tensor(self.rows.tokens[packed_rows, positions])
        hidden = self._forward(tokens, at, Cached(self.memory, where, at, shares, blocks))
        last = np.empty(len(rows), dtype=np.int64)
        last[order] = ends - 1
        return hidden, last

    def _append(self, rows: IntArray, scores: Tensor, version: int) -> None:
        table = self.rows
        chance = uniforms(table.key[rows], table.length[rows])
        tokens, logprobs = draw(scores, table.temperature[rows], table.top_k[rows], table.top_p[rows], chance)
        if not np.isfinite(logprobs).all():
            lost = int((~np.isfinite(logprobs)).sum())
            raise NumericsError(
                f"the model's logits are not finite for {lost} of {len(rows)} rows at version {version}"
            )
        table.append(rows, tokens, logprobs, version)
        self.num_generated += len(rows)

    # ---- room

    def _make_room(self, length: int) -> None:
        if length > self.rows.capacity:
            capacity = self.rows.capacity
            while capacity < length:
                capacity *= 2
            self.rows.grow(capacity)
            self.memory.grow(capacity)

    def _move_together(self) -> None:
        """Fill the holes that finished rows left, once there are so many that reading over them costs more."""
        active = self.rows.active
        if len(active) == 0 or active[-1] + 1 <= _MAX_HOLES * len(active) + 2:
            return
        holes = np.flatnonzero(~self.rows.is_active[: len(active)])
        for hole, row in zip(holes.tolist(), active[len(active) - len(holes) :].tolist(), strict=True):
            self._swap(hole, row)

    def _line_up(self) -> None:
        """Put long rows before short ones where that spares attention much reading of short ones' padding."""
        active = self.rows.active
        lengths = self.rows.length[active]
        swaps = _swaps(lengths)
        if not swaps:
            return
        saved = keys_read(active, lengths) - keys_read(active, np.sort(lengths)[::-1])
        if saved > _SWAP_COST * len(swaps):
            for one, other in swaps:
                self._swap(int(active[one]), int(active[other]))

    def _swap(self, one: int, other: int) -> None:
        self.memory.swap(one, other, int(self.rows.computed[[one, other]].max()))
        self.rows.swap(one, other)
        self.owners[one], self.owners[other] = self.owners[other], self.owners[one]

    def _tensor(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)


def _swaps(lengths: IntArray) -> list[tuple[int, int]]:
    """Pairs of places to exchange, one after the other, so that classes of length fall; each is twice the next."""
    now = np.ceil(np.log2(np.maximum(lengths, _SMALLEST // 2))).astype(np.int64)
    wanted = np.sort(now)[::-1]
    swaps = []
    for place in range(len(now)):  # in this order: whoever is wanted here is never at an earlier place
        if now[place] < wanted[place]:
            other = int(np.flatnonzero((now == wanted[place]) & (now > wanted))[-1])
            swaps.append((place, other))
            now[[place, other]] = now[[other, place]]
    return swaps
