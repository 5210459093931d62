"""Load balancer over several engines: fewest outstanding tokens, and affinity to the engine that cached the prompt.

Branches go to the engine that wrote their prefix. Balancing by outstanding tokens is AsyncFlow's and FlexMARL's; a
request that must leave an engine takes its tokens along, because random numbers belong to (key, position) and not to an
engine.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from strop.backends import Completion, Stop, WeightVersion
from strop.capabilities import Closes, Hurries, TellsStacks, generated, outermost
from strop.errors import ConfigurationError, EngineError
from strop.generate.engines.wrappers.chunked import joined
from strop.generate.engines.wrappers.prefix_affinity import KnownContexts
from strop.roles import Engine
from strop.types import IntArray, Sampling
from strop.weights.delivery import check

# Requests that an engine may be ahead of the least busy one and still get another sibling: in groups of 8, two engines
# then read a prompt once each instead of four times, and no engine is ever more than that behind.
_TOGETHER = 4


@dataclass(eq=False)
class Placed:
    """Request and the engine it runs on."""

    prompt: IntArray  # [P]
    sampling: Sampling
    key: int
    seat: EngineSeat
    is_moving: bool = False
    has_left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def cost(self) -> int:
        """Tokens it may still need."""
        return len(self.prompt) + self.sampling.max_tokens


@dataclass(eq=False)
class EngineSeat:
    """Engine and its outstanding requests."""

    engine: Engine
    outstanding: int = 0  # tokens
    prompts: set[bytes] = field(default_factory=set)  # read since the last version: their keys are there
    known: KnownContexts = field(default_factory=KnownContexts)


@dataclass
class Several(Engine):
    """Engine made of several engines, which may join and leave during a run; a permanently lost one is dropped."""

    engines: tuple[Engine, ...]
    _seats: list[EngineSeat] = field(init=False, repr=False, compare=False, default_factory=list)
    _running: list[Placed] = field(init=False, repr=False, compare=False, default_factory=list)
    _homes: dict[int, EngineSeat] = field(init=False, repr=False, compare=False, default_factory=dict)
    _model: Path | None = field(init=False, repr=False, compare=False, default=None)
    _newest: WeightVersion | None = field(init=False, repr=False, compare=False, default=None)

    def open(self, model: Path) -> None:
        if not self.engines:
            raise ConfigurationError("Several needs at least 1 engine, got 0")
        self._model = model
        for engine in self.engines:
            engine.open(model)
        self._seats = [EngineSeat(engine) for engine in self.engines]

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt` on one engine, and on others should that one leave."""
        pieces: list[Completion] = []
        while True:
            rest, limit = _rest(prompt, sampling, pieces)
            request = Placed(rest, limit, key, self._choose(rest, limit, key))
            try:
                part = await self._run(request)
            except EngineError as error:
                self._give_up(request.seat, error)
                continue
            if part.stop is not Stop.ABORTED or not request.is_moving:
                return joined([*pieces, part], part.stop)
            pieces = [*pieces, part] if not sampling.stop else []  # a stop string may span the cut

    async def load(self, version: WeightVersion) -> str:
        """All of them, or the run stops and says which; their common fingerprint."""
        self._newest, seats = version, list(self._seats)
        answers = await asyncio.gather(*(self._load(seat, version) for seat in seats))
        self._drop_prefixes()
        found = {number: answer for number, answer in enumerate(answers) if answer is not None}
        for number, answer in found.items():
            expected = version.fingerprint or next(iter(found.values()))
            check(replace(version, fingerprint=expected), answer, _name(number, seats[number].engine))
        return next(iter(found.values()))

    def forget(self) -> None:
        self._drop_prefixes()
        for seat in self._seats:
            seat.engine.forget()

    def abort(self, key: int) -> None:
        for request in self._running:
            if request.key == key:
                request.is_moving = False
                request.seat.engine.abort(key)

    async def close(self) -> None:
        """End all that can be ended."""
        await asyncio.gather(*(_close(seat.engine) for seat in self._seats))

    @property
    def num_generated(self) -> int:
        """Tokens sampled by those that say how many."""
        return sum(generated(engine) or 0 for engine in self.engines)

    def stacks(self) -> str:
        """What the process of each is doing, where it has one of its own."""
        asked = [(n, part) for n, engine in enumerate(self.engines) for _, part in outermost(engine, TellsStacks)]
        return "".join(f"engine {number}\n{part.stacks()}" for number, part in asked)

    def hurry(self, keys: Sequence[int]) -> None:
        for seat in self._seats:
            for _, engine in outermost(seat.engine, Hurries):
                engine.hurry(keys)

    # ---- coming and going

    async def add(self, engine: Engine) -> None:
        """Open another engine, prove that it holds the newest version, and let it take part."""
        if self._model is None:
            raise ConfigurationError("Several has no model yet: call open(model) first")
        engine.open(self._model)
        is_current = False
        while not is_current:  # a version may be published while this one loads
            version = self._newest
            answer = await engine.load(version) if version is not None else ""
            is_current = version is self._newest
        if version is not None and version.fingerprint:
            check(version, answer, _name(len(self._seats), engine))
        self._seats.append(EngineSeat(engine))
        self.engines = (*self.engines, engine)

    async def remove(self, index: int) -> None:
        """Let an engine go; what it is writing goes on elsewhere."""
        if len(self._seats) == 1:
            raise ConfigurationError("the last engine cannot be removed: add another one first")
        seat = self._seats[index]
        self._leave(seat)
        leaving = [request for request in self._running if request.seat is seat]
        for request in leaving:
            request.is_moving = True
            seat.engine.abort(request.key)
        await asyncio.gather(*(request.has_left.wait() for request in leaving))
        await _close(seat.engine)

    def _give_up(self, seat: EngineSeat, error: EngineError) -> None:
        """Go on without an engine that cannot be had back; without any, there is no going on."""
        if seat not in self._seats:
            return
        if len(self._seats) == 1:
            raise error
        print(f"warning: going on with {len(self._seats) - 1} engines: {error}", file=sys.stderr)
        self._leave(seat)

    def _leave(self, seat: EngineSeat) -> None:
        self._seats.remove(seat)
        self.engines = tuple(each.engine for each in self._seats)
        self._homes = {key: home for key, home in self._homes.items() if home is not seat}

    # ---- where to

    def _choose(self, prompt: IntArray, sampling: Sampling, key: int) -> EngineSeat:
        """A later turn goes where its keys are, a branch where its beginning is, a sibling where its prompt is.

        All others go to who has least to do.
        """
        if key in self._homes:
            return self._homes[key]
        least = min(self._seats, key=lambda seat: seat.outstanding)
        slack = _TOGETHER * (len(prompt) + sampling.max_tokens)
        near = [seat for seat in self._seats if seat.outstanding - least.outstanding <= slack]
        shared = max(seat.known.shared(prompt) for seat in near)
        if shared:  # read anew it would cost as much as many tokens written, which an idle engine is not worth
            return min((s for s in near if s.known.shared(prompt) == shared), key=lambda seat: seat.outstanding)
        name = prompt.tobytes()
        holding = [seat for seat in near if name in seat.prompts]
        if holding and least.outstanding:
            return min(holding, key=lambda seat: seat.outstanding)
        return least

    async def _run(self, request: Placed) -> Completion:
        seat = self._homes[request.key] = request.seat
        seat.prompts.add(request.prompt.tobytes())
        seat.outstanding += request.cost
        self._running.append(request)
        try:
            part = await seat.engine.sample(request.prompt, request.sampling, request.key)
            seat.known.add(request.prompt, part.tokens)
            return part
        finally:
            self._running.remove(request)
            seat.outstanding -= request.cost
            request.has_left.set()

    async def _load(self, seat: EngineSeat, version: WeightVersion) -> str | None:
        try:
            return await seat.engine.load(version)
        except EngineError as error:
            self._give_up(seat, error)
            return None

    def _drop_prefixes(self) -> None:
        """No engine keeps the keys of other weights, so only what is running still ties a key to its engine."""
        for seat in self._seats:
            seat.known.clear()
            seat.prompts = {request.prompt.tobytes() for request in self._running if request.seat is seat}
        self._homes = {request.key: request.seat for request in self._running if request.seat in self._seats}


def _rest(prompt: IntArray, sampling: Sampling, pieces: Sequence[Completion]) -> tuple[IntArray, Sampling]:
    """What is still to be asked."""
    if not pieces:
        return np.asarray(prompt, dtype=np.int64), sampling
    left = sampling.max_tokens - sum(len(piece.tokens) for piece in pieces)
    return np.concatenate([prompt, *(piece.tokens for piece in pieces)]), replace(sampling, max_tokens=left)


def _name(number: int, engine: Engine) -> str:
    return f"engine {number} ({type(engine).__name__})"


async def _close(engine: Engine) -> None:
    for _, part in outermost(engine, Closes):
        await part.close()
