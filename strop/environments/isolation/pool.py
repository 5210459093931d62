"""Pool of worker processes with several episodes each, and batched observations (EnvPool, 2206.10558).

`Apart` has one process per running rollout; here a few processes serve all. An episode stays in the process in which it
began and is never reset by the pool, so that no rollout continues in another's state. An exception fails its own
episode alone. A hang or crash fails all episodes of that process, and later ones start in a new process; a completion
that is retried for such failures (`generate/step_trial.py`) is then tried once more.

Papers: envpool
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from strop.capabilities import Closes, Learns
from strop.environments.isolation.batched_answers import Blocks
from strop.environments.isolation.client import (
    EndsHung,
    EnvironmentRaised,
    asked,
    is_alone,
    nothing,
    observation,
    started,
)
from strop.environments.wrappers.around import Around
from strop.environments.wrappers.versioned import check_undated
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.types import Group, Message, Metrics, Observation, Task
from strop.workers.child import Child
from strop.workers.foreign_checks import answered, checked
from strop.workers.untrusted_answers import NoAnswer

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Pooled(Around, EndsHung, Closes, Learns):
    """Environment in `processes` worker processes; observations are returned in batches of `batch`."""

    inner: Environment
    processes: int = 2  # that serve all rollouts
    batch: int = 4  # answers that go on together; fewer where no episode is at work any more
    seconds: float = 30.0  # within which an episode answers, or its process is killed
    _members: list[_Member] = field(default_factory=list, init=False, repr=False, compare=False)
    _blocks: list[Blocks] = field(default_factory=list, init=False, repr=False, compare=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.processes < 1 or self.batch < 1 or not self.seconds > 0:
            raise ConfigurationError(
                "Pooled needs processes >= 1, batch >= 1 and seconds > 0, "
                f"got {self.processes}, {self.batch} and {self.seconds:g}"
            )
        check_undated(self.inner, "Pooled")
        self._blocks.append(Blocks(self.batch))

    def check(self, task: Task, completion: str) -> float:
        return checked(self.inner, task, completion)

    def answer(self, completion: str) -> str:
        return answered(self.inner, completion)

    def episode(self) -> Episode:
        return _Pool(self)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Episodes that each process served in the batch, if all did equally."""
        count = sum(len(group.rollouts) for group in groups if group.task.source == self.name)
        return {"episodes_per_process": count / self.processes}

    async def close(self) -> None:
        while self._members:
            await self._members.pop().end()

    def admit(self) -> tuple[int, _Member]:
        """A number for an episode, and the process that has the fewest."""
        number = next(self._numbers)
        self._members[:] = [member for member in self._members if not member.is_gone]
        if len(self._members) < self.processes:
            self._members.append(_Member(self.inner, self.seconds))
        member = min(self._members, key=lambda each: len(each.episodes))
        member.episodes.add(number)
        return number, member

    @property
    def blocks(self) -> Blocks:
        return self._blocks[0]

    def __reduce__(self) -> Any:
        return Pooled, (self.inner, self.processes, self.batch, self.seconds)  # processes stay where they are


@dataclass(eq=False)
class _Member:
    """Worker process of a pool; requests are handled one at a time, in order of arrival."""

    env: Environment
    seconds: float
    episodes: set[int] = field(default_factory=set, init=False, repr=False, compare=False)
    is_gone: bool = field(default=False, init=False, repr=False, compare=False)
    _child: Child | None = field(default=None, init=False, repr=False, compare=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False, compare=False)

    async def ask(
        self, verb: str, number: int, subject: Task | Message | None, read: Callable[[dict[str, Any]], _Read]
    ) -> _Read:
        """An answer that is not as it should be, or a cancellation while it is awaited, ends the process."""
        async with self._turn:
            if self.is_gone:
                raise NoAnswer("the process that it shared with others is gone")
            try:
                if self._child is None:
                    self._child = await started(self.env)
                return await asked(self._child, {"verb": verb, "number": number}, subject, self.seconds, read)
            except EnvironmentRaised:
                raise  # the others in there are not concerned
            except BaseException:
                await self.end()
                raise

    async def end(self) -> None:
        self.is_gone = True
        if self._child is not None:
            await self._child.kill()


@dataclass
class _Pool(Episode):
    """Parent-side proxy of an episode in a pool."""

    home: Pooled
    _number: int = field(default=-1, init=False, repr=False, compare=False)
    _member: _Member | None = field(default=None, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self._number, self._member = self.home.admit()
        await self._member.ask("reset", self._number, task, nothing)

    async def step(self, completion: Message) -> Observation:
        if self._member is None:
            raise NoAnswer("it was never reset")
        work = self._member.ask("step", self._number, completion, observation)
        return await self.home.blocks.through(self._number, work)

    async def close(self) -> None:
        if self._member is None or self._member.is_gone:
            return
        await self._member.ask("close", self._number, None, is_alone)
        self._member.episodes.discard(self._number)
