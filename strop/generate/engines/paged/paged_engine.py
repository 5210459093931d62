"""Single-GPU engine with a paged KV cache, decode steps as CUDA graphs, and rare host synchronization.

Siblings share prompt pages, prefill is chunked between decode steps, weights change between two steps while requests go
on, and other model families run on the plain engine, with a warning. On a CPU the same code runs in plain torch.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, NumericsError
from strop.generate.engines.cpu.torch_engine import TorchEngine, check_request, named_dtype, read_weights
from strop.generate.engines.paged.block_manager import Pages
from strop.generate.engines.paged.device_state import Board, Look
from strop.generate.engines.paged.draft_model import Draft
from strop.generate.engines.paged.kv_memory import context_of, num_pages, operations_on, prefill_pieces
from strop.generate.engines.paged.paged_llama import PagedLlama, why_not
from strop.generate.engines.paged.paged_request import Request, new_request
from strop.generate.engines.paged.scheduler import Seating
from strop.generate.engines.stops import StopStrings, end_tokens
from strop.generate.engines.yield_to_loop import PASSES, let_others_run
from strop.models.layers.eight_bit_linear import load_held
from strop.models.model import parameters
from strop.roles import Engine
from strop.storage.picture_store import PictureStore
from strop.types import IntArray, Sampling
from strop.weights.fingerprint import fingerprint
from strop.weights.shared_base_weights import Loan, Shared, readable

_PREFILL = 16384  # tokens of prompts between two looks
_NAP = 3e-4  # seconds between two questions whether the device is done


@dataclass
class PagedEngine(Engine):
    """Engine for up to `rows` concurrent sequences; with `keep_cache` they keep old keys across a weight update."""

    rows: int = 1024
    device: str = "cuda"
    dtype: str = "bfloat16"
    keep_cache: bool = False
    context: int = 0  # tokens of the longest context; 0: the model's, at most 8192
    cache_tokens: int = 0  # whose keys fit; 0: as `memory` allows
    memory: float = 0.4  # share of the device's memory for keys
    steps: int = 8  # decode steps between two looks of the host
    draft: Draft | None = None  # guesses ahead where few sequences are decoded
    races: bool = False  # tokens are drawn by a race, other ones of the same distribution: a draft guesses those better
    matmul_precision: str = "plain"  # of layers: plain, or fp8: of 8-bit numbers, as the trainer's
    takes_turns: bool = field(init=False, repr=False, compare=False, default=False)  # with a trainer on its device
    version: int = field(init=False, repr=False, compare=False, default=0)
    num_generated: int = field(init=False, repr=False, compare=False, default=0)  # tokens sampled
    num_prefilled: int = field(init=False, repr=False, compare=False, default=0)  # tokens of prompts computed
    num_reused: int = field(init=False, repr=False, compare=False, default=0)  # tokens of prompts found computed
    store: PictureStore | None = field(default=None, init=False, repr=False, compare=False)  # of the run folder
    _slow: TorchEngine | None = field(init=False, repr=False, compare=False, default=None)
    _model: Any = field(init=False, repr=False, compare=False, default=None)
    _shared: Shared | None = field(init=False, repr=False, compare=False, default=None)
    _weights: dict[str, Tensor] = field(init=False, repr=False, compare=False)  # what a version brings anew
    _board: Board = field(init=False, repr=False, compare=False)
    _seating: Seating = field(init=False, repr=False, compare=False)
    _strings: StopStrings = field(init=False, repr=False, compare=False)
    _ends: frozenset[int] = field(init=False, repr=False, compare=False, default=frozenset())
    _looks: deque[tuple[Look, list[Request]]] = field(init=False, repr=False, compare=False, default_factory=deque)
    _turn: asyncio.Lock = field(init=False, repr=False, compare=False, default_factory=asyncio.Lock)
    _pump: asyncio.Task[None] | None = field(init=False, repr=False, compare=False, default=None)

    def open(self, model: Path) -> None:
        """Read the model from a Hugging Face folder and set the room for keys aside."""
        if self.rows < 1 or self.steps < 1:
            raise ConfigurationError(f"an engine needs rows >= 1 and steps >= 1, got {self.rows} and {self.steps}")
        shared = self._shared
        self._model = (
            shared.model if shared else load_held(model, named_dtype(self.dtype), self.device, self.matmul_precision)
        )
        if reason := why_not(self._model):
            print(f"warning: {model} takes the slow path of generation: {reason}", file=sys.stderr)
            self._slow = TorchEngine(self.rows, self.device, self.dtype, self.keep_cache, self.matmul_precision)
            self._slow.store = self.store
            return self._slow.open(model)
        operations, context = operations_on(self.device, self.races), context_of(self, self._model)
        llama = PagedLlama(self._model, operations, context)
        self._weights = parameters(self._model) if shared is None else llama.adapters(self._model)
        pages = Pages(num_pages(self.rows, self.cache_tokens, self.memory, self.device, llama.page_bytes(), context))
        ends = end_tokens(self._model)
        self._ends = frozenset(ends.tolist())
        self._board = Board(llama, operations, llama.cache(pages.count, self.takes_turns), self.rows, context, ends)
        if self.draft is not None:
            self._board.guess_with(self.draft)
        self._strings = StopStrings(model)
        self._seating = Seating(self.rows, pages, (2 * self.steps + 1) * self._board.most)  # two looks are under way

    def keep_in(self, folder: Path) -> None:
        """Read pictures from a run folder; models that see take the slow path."""
        self.store = PictureStore(folder)

    def borrow(self, shared: Loan | None) -> bool:
        """Read these weights in place, with adapters of its own, where they are what it would hold and it has none."""
        found = readable(shared, self.device, named_dtype(self.dtype)) if self._model is None else None
        self._shared = None if found is None or why_not(found.model) else found
        return self._shared is not None

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt`, together with whatever else is running."""
        if self._slow is not None:
            return await self._slow.sample(prompt, sampling, key)
        request = self._request(np.asarray(prompt, dtype=np.int64), sampling, key)
        self._seating.waiting.append(request)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())
        try:
            return await request.future
        except asyncio.CancelledError:
            self._withdraw(request)
            raise

    async def load(self, version: WeightVersion) -> str:
        """Take new weights between two decode steps; running requests go on."""
        if self._slow is not None:
            self.version = version.step
            return await self._slow.load(version)
        async with self._turn:
            if not self.keep_cache:
                while self._looks:  # see everything that is under way
                    await self._see()
                self._unseat(list(self._seating.seated.values()))
            weights = self._weights
            source = read_weights(version.location, self._model)
            with self._board.turn():
                self._board.renew(source, weights, version.step)
                answer = fingerprint(weights) if self._shared is None else self._shared.held(weights)
            self._seating.forget()
            self.version = version.step
            return answer

    def abort(self, key: int) -> None:
        """End every request of this key as far as it got."""
        if self._slow is not None:
            return self._slow.abort(key)
        for request in [request for request in self._seating.waiting if request.key == key]:
            self._seating.waiting.remove(request)
            request.answer(Stop.ABORTED)
        seated = [request for request in self._seating.seated.values() if request.key == key]
        if seated:
            with self._board.turn():
                self._board.empty([request.slot for request in seated])
                self._fetch(seated, None)
            for request in seated:
                self._answer(request, Stop.ABORTED)

    def forget(self) -> None:
        """Drop every kept prefix: from here on, nothing depends on what was asked before."""
        (self._slow or self._seating).forget()

    def rest(self) -> None:
        """Give the room for keys back until somebody is seated; who sits now waits, to have its keys computed anew."""
        if self.takes_turns and self._slow is None:
            self._unseat(list(self._seating.seated.values()))
            self._seating.forget()
            self._board.rest()

    async def _run(self) -> None:
        """Keep the device busy while there is work; whatever goes wrong reaches everybody who waits."""
        try:
            await let_others_run(PASSES)
            while self._seating or self._looks:
                async with self._turn:
                    has_ended = await self._round()
                await let_others_run(PASSES if has_ended else 1)
        except asyncio.CancelledError:
            self._dismiss(lambda request: request.future.cancel())
            raise
        except Exception as error:
            self._dismiss(methodcaller("fail", error))

    async def _round(self) -> bool:
        """Admit, let the device run ahead by one look, and see what the look before it shows."""
        self._admit()
        while len(self._looks) < 2 and (steps := self._seating.promise(self.steps)):
            self._advance(steps)
        return bool(self._looks) and await self._see()

    def _admit(self) -> None:
        """Seat whoever finds a slot and pages, and compute what their prompts lack."""
        seats = self._seating.seat(_PREFILL)
        self.num_reused += sum(seat.start for seat in seats)
        self.num_prefilled += sum(seat.lacks for seat in seats)
        if seats:
            with self._board.turn():
                self._board.seat(seats)
                for pieces in prefill_pieces(seats, _PREFILL):
                    self._board.prefill(pieces)

    def _advance(self, steps: int) -> None:
        seated = self._seating.seated
        while (grown := self._seating.grow()) is None:  # who came last gives its pages to those before
            self._unseat([next(reversed(seated.values()))])
        if grown:
            with self._board.turn():
                self._board.hold(grown)
        requests = list(seated.values())
        order = np.fromiter(seated, np.int64, len(requests))
        is_truncated = any(request.sampling.is_truncated for request in requests)
        with self._board.turn():
            self._looks.append((self._board.advance(order, steps, is_truncated), requests))

    async def _see(self) -> bool:
        """Wait for the oldest look and let go whoever has ended; answers whether somebody has."""
        look, requests = self._looks.popleft()
        while not look.is_here:
            await asyncio.sleep(_NAP)
        is_active = look.is_active.numpy()
        still = [request for request in requests if self._seating.holds(request)]
        for request, length in zip(requests, look.lengths.tolist(), strict=True):
            request.known = max(request.known, length)
        over = {request for request, goes_on in zip(requests, is_active, strict=True) if not goes_on}
        ended = over.intersection(still)
        watched = [request for request in still if request.sampling.stop and request not in ended]
        if watched:
            ended |= self._stopped_by_string(watched)
        finished = [request for request in still if request in ended]
        unread = [request for request in finished if request not in watched]
        if unread:
            self._fetch(unread, look)
        for request in finished:
            self._answer(request, Stop.LENGTH)
        return bool(finished)

    def _answer(self, request: Request, otherwise: Stop) -> None:
        request.routes = self._board.routes(request.pages, len(request.tokens))
        self._board.teach(*request.lesson(self.version))
        self._seating.leave(request)
        request.answer(request.ending(self._strings, self._ends) or otherwise)

    def _stopped_by_string(self, watched: Sequence[Request]) -> set[Request]:
        """Those in whose new tokens a stop string is complete; they have run on, and are cut there."""
        with self._board.turn():
            self._fetch(watched, None)
            stopped = {request for request in watched if request.is_cut_at_string(self._strings)}
            if stopped:
                self._board.empty([request.slot for request in stopped])
        return stopped

    def _fetch(self, requests: Sequence[Request], look: Look | None) -> None:
        """Bring what was written into the requests."""
        tokens, logprobs, versions, lengths = self._board.read([request.slot for request in requests], look)
        for row, (request, length) in enumerate(zip(requests, lengths.tolist(), strict=True)):
            before = len(request.tokens)  # what an earlier seat wrote is not on the board with its logprobs
            if not np.isfinite(logprobs[row, before:length]).all():
                raise NumericsError(f"the model's logits are not finite at version {self.version}")
            self.num_generated += length - before
            request.take(tokens[row, :length].copy(), logprobs[row, before:length], versions[row, before:length])

    def _unseat(self, requests: list[Request]) -> None:
        """Running requests give their slots back and wait in front, to have their keys computed anew."""
        if requests:
            with self._board.turn():
                self._board.empty([request.slot for request in requests])
                self._fetch(requests, None)
        for request in (over := [each for each in requests if each.ending(self._strings, self._ends)]):
            self._answer(request, Stop.LENGTH)
        for request in (rest := [each for each in requests if each not in over]):
            self._board.teach(*request.lesson(self.version))
        self._seating.unseat(rest)

    def _withdraw(self, request: Request) -> None:
        """Forget a request that nobody waits for any more."""
        if request in self._seating.waiting:
            self._seating.waiting.remove(request)
        elif self._seating.holds(request):
            with self._board.turn():
                self._board.empty([request.slot])
            self._seating.leave(request, is_whole=False)

    def _dismiss(self, tell: Callable[[Request], object]) -> None:
        """Everybody leaves and is told why, so that nobody waits in vain."""
        requests = [*self._seating.waiting, *self._seating.seated.values()]
        for request in requests:
            self._withdraw(request)
        self._looks.clear()
        self._seating.forget()  # keys may be half written
        for request in requests:
            if not request.future.done():
                tell(request)

    def _request(self, prompt: IntArray, sampling: Sampling, key: int) -> Request:
        check_request(prompt, sampling, self._board.context, self._model.get_input_embeddings().weight.shape[0])
        if sampling.stop:
            self._strings.open()
        return new_request(prompt, sampling, key, self._board.context, self._seating.pages.count)
