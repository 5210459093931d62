"""Synchronous decode loop of the CPU engine: one forward pass advances each row by one token."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from strop.errors import NumericsError
from strop.generate.engines.cpu.block_step import noted
from strop.generate.engines.cpu.compiled_llama import CompiledLlama
from strop.generate.engines.cpu.decode_rows import Rows, Work, lined_up, moved_together
from strop.generate.engines.cpu.fused_cpu_step import WholeStep
from strop.generate.engines.cpu.kv_cache import Block, Cached, KeyValues, Share, decode_blocks, prefill_blocks
from strop.generate.engines.cpu.row_states import Stretch
from strop.generate.engines.sampling import draw
from strop.kernels.sampling.counter_random import as_key, uniforms
from strop.models.layers.mixers import mixers
from strop.models.model import context_length, logits
from strop.models.pictures import ReadArrays, Turns, merge_of
from strop.models.tokens.picture_words import uncut
from strop.types import IntArray, Sampling

_SMALLEST = 64  # capacity to start with; a multiple keeps every row's keys aligned
# Tokens of all rows together, and of each, that are written before the host looks whether somebody came or left: about
# 25 ms of the pocket model with many rows, 3 ms with one.
_UNSEEN_TOKENS, _UNSEEN_STEPS = 256, 8


class Asked(Protocol):
    """Fields that a request must have."""

    prompt: IntArray
    sampling: Sampling
    key: int


Request = TypeVar("Request", bound=Asked)


class Decoder(Generic[Request]):
    """Rows, their KV cache, and the forward pass over tokens whose keys are missing."""

    def __init__(
        self,
        model: Any,
        forward: Callable[[Tensor, Tensor, Cached], Tensor],
        num_rows: int,
        step_tokens: int,
        pictures: ReadArrays | None = None,
    ) -> None:
        self._model = model
        self._forward = forward
        self._step_tokens = step_tokens  # bounds the memory of one forward pass
        self._reads_alone = isinstance(forward, CompiledLlama)  # so that it does not matter which rows lie together
        self._whole = forward if isinstance(forward, WholeStep) else None
        self._device = next(model.parameters()).device
        self.context = context_length(model)
        self.rows = Rows(num_rows, _SMALLEST, has_states=bool(mixers(model)))
        self.memory = KeyValues(num_rows, _SMALLEST)
        self.owners: list[Request | None] = [None] * num_rows
        self._urgent = np.empty(0, dtype=self.rows.key.dtype)  # keys that nothing else may hold up
        self._turns = Turns(merge_of(model.config), pictures) if pictures is not None else None
        self._is_mutual = pictures is not None and pictures.is_mutual
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
        if self._whole is not None and (writing := self._only_writing(queue)) is not None:
            return self._write(self._whole, writing, version)
        if not self._reads_alone:
            for order in (moved_together, lined_up):
                for one, other in order(self.rows):
                    self._swap(one, other)
        work = self._plan(queue)
        rows, starts, counts = (np.array(part, dtype=np.int64) for part in (work.rows, work.starts, work.counts))
        self._make_room(int(self.rows.length[rows].max()) + 1)
        hidden, last = self._compute(rows, starts, counts, work.shares)
        self.rows.computed[rows] = starts + counts
        is_complete = starts + counts == self.rows.length[rows]
        complete: IntArray = rows[is_complete]
        if len(complete):
            self._append(complete, hidden[self._tensor(last[is_complete])], version)
        return complete

    def _only_writing(self, queue: deque[Request]) -> IntArray | None:
        """The rows of the coming step, siblings together, where all of them lack one token and nobody comes."""
        rows, (active, coming) = self.rows, self._chosen(queue)
        if not len(active) or (coming and rows.num_free):
            return None
        if (rows.length[active] - rows.computed[active] != 1).any() or rows.is_truncated[active].any():
            return None
        ordered: IntArray = active[np.argsort(rows.lender[active], kind="stable")]
        return ordered

    def _write(self, whole: WholeStep, rows: IntArray, version: int) -> IntArray:
        """Several steps, as long as no row ends."""
        table = self.rows
        steps = 1 if table.has_strings[rows].any() else max(1, min(_UNSEEN_STEPS, _UNSEEN_TOKENS // len(rows)))
        self._make_room(min(int(table.length[rows].max()) + steps, int(table.limit[rows].max())))
        done, lost = whole.write(table, self.memory, rows, steps, version)
        self._check_finite(lost, len(rows), version)
        self.num_generated += done * len(rows)
        return rows

    def _plan(self, queue: deque[Request]) -> Work:
        rows, (active, queue) = self.rows, self._chosen(queue)
        rows.planned[:] = rows.computed
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

    def _chosen(self, queue: deque[Request]) -> tuple[IntArray, deque[Request]]:
        """Who may go on and who may come: while some are urgent, nobody else."""
        active = self.rows.active
        urgent = active[np.isin(self.rows.key[active], self._urgent)] if len(self._urgent) else active[:0]
        return (urgent, deque()) if len(urgent) else (active, queue)

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
        self.rows.snapshot[row] = max(int(self.rows.snapshot[row]), length)
        self.rows.lend(source, row, length)
        is_there = length <= self.rows.computed[source]
        if length and is_there and self.rows.has_states:
            self._go_on(source, row, length)
        if source != row and length:
            if is_there:
                self.memory.copy(source, row, length)
            else:
                work.share(source, row, length)
        # what is shared during the step is not there yet: nobody may copy it before
        self.rows.computed[row] = length if is_there else 0

    def _go_on(self, source: int, row: int, length: int) -> None:
        """Take the state there: that at the source's end if it has gone no further, else its snapshot."""
        if length < self.rows.computed[source]:
            self.memory.states.go_on(np.array([source]), np.array([row]))
        elif source != row:
            self.memory.states.go_on(np.array([source]), np.array([row]), from_snapshot=False)

    def _take(self, row: int, start: int, work: Work) -> None:
        missing = self.rows.tokens[row, start : self.rows.length[row]]
        count = uncut(missing, min(len(missing), work.budget))
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
                facts = rows[several], starts[several], counts[several], len(single), self._device
                made += prefill_blocks(*facts, self.rows.tokens if self._is_mutual else None)
            return made

        where, at, tokens = map(self._tensor, (packed_rows, positions, self.rows.tokens[packed_rows, positions]))
        turned = at if self._turns is None else self._tensor(self._turns(self.rows, packed_rows, positions))
        plan = Cached(self.memory, where, at, shares, blocks)
        if self.rows.has_states:
            facts = np.stack((rows, starts, counts, np.zeros_like(rows), self.rows.snapshot[rows]), 1)[order]
            facts[:, 3] = ends - counts[order]
            plan.stretches = [Stretch(*each) for each in facts.tolist()]
        hidden = self._forward(tokens, turned, plan)
        if plan.chosen:
            plan.keep(noted(list(plan.chosen.values())))
        last = np.empty(len(rows), dtype=np.int64)
        last[order] = ends - 1
        return hidden, last

    def _append(self, rows: IntArray, hidden: Tensor, version: int) -> None:
        """One more token for each row, from its last hidden state [N, hidden]."""
        self.num_generated += len(rows)
        if self._whole is not None:
            is_truncated = self.rows.is_truncated[rows]
            plain = np.flatnonzero(~is_truncated)
            lost = self._whole.append(self.rows, rows[plain], hidden[self._tensor(plain)], version)
            self._check_finite(lost, len(plain), version)
            rows, hidden = rows[is_truncated], hidden[self._tensor(np.flatnonzero(is_truncated))]
        if len(rows):
            self._draw(rows, logits(self._model, hidden), version)

    def _draw(self, rows: IntArray, scores: Tensor, version: int) -> None:
        table = self.rows
        probability = uniforms(table.key[rows], table.length[rows])
        tokens, logprobs = draw(scores, table.temperature[rows], table.top_k[rows], table.top_p[rows], probability)
        self._check_finite(int((~np.isfinite(logprobs)).sum()), len(rows), version)
        table.append(rows, tokens, logprobs, version)

    def _check_finite(self, lost: int, count: int, version: int) -> None:
        if lost:
            raise NumericsError(f"the model's logits are not finite for {lost} of {count} rows at version {version}")

    # ---- room

    def _make_room(self, length: int) -> None:
        if length > self.rows.capacity:
            capacity = self.rows.capacity
            while capacity < length:
                capacity *= 2
            self.rows.grow(capacity)
            self.memory.grow(capacity)

    def _swap(self, one: int, other: int) -> None:
        self.memory.swap(one, other, int(self.rows.computed[[one, other]].max()))
        self.rows.swap(one, other)
        self.owners[one], self.owners[other] = self.owners[other], self.owners[one]

    def _tensor(self, array: IntArray) -> Tensor:
        return torch.from_numpy(array).to(self._device)
