"""Pool of reward worker processes: requests with a deadline, replacement of workers that hang or die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from numpy.typing import NDArray

from strop.errors import RewardError
from strop.filter.reward_values import MOST_NAMES, Fault, Score, facts_from_json, from_json, tallying
from strop.roles import Reward
from strop.types import Group
from strop.workers.child import Child
from strop.workers.frames import Arrays
from strop.workers.pickled_parts import packed
from strop.workers.untrusted_answers import Died, NoAnswer, TooLate, entries

_STARTS = 3  # a machine may kill a process that is not to blame


def setup_of(rewards: Sequence[Reward]) -> Arrays:
    """What a worker is told first; each reward is packed by itself, so that the one that cannot be is named."""
    return {str(index): _packed(reward) for index, reward in enumerate(rewards)}


def _packed(reward: Reward) -> NDArray[Any]:
    name = f"reward {type(reward).__name__}"
    return packed(reward, name, "its worker process", ", or set `is_inline = True` if it is pure and fast", RewardError)


class Worker:
    """Process that scores one group at a time."""

    def __init__(self, process: Child, names: set[str], rewards: Sequence[Reward] = ()) -> None:
        self._process, self._names, self._rewards = process, names, rewards

    @classmethod
    async def start(cls, setup: Arrays, rewards: Sequence[Reward], names: set[str]) -> Worker:
        """A worker that has loaded the rewards; what it cannot load stops the run, and so does one that always dies."""
        faults: list[str] = []
        while len(faults) < _STARTS:
            worker = cls(Child("strop.filter.worker"), names, rewards)
            try:
                _require_ready((await worker._process.ask({}, setup)).head, rewards)
                return worker
            except NoAnswer as error:
                await worker.kill()
                faults.append(str(error))
            except BaseException:
                await worker.kill()
                raise
        raise RewardError(f"the worker of the rewards did not start, {_STARTS} times: {'; '.join(faults)}")

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive

    async def ask(self, index: int, group: Group, seconds: float) -> list[Score]:
        """The scores of reward number `index`; a worker that does not answer as it should is dead afterwards."""
        try:
            question = {"group": packed(group, "a group", "its worker process")}
            found = await self._process.ask({"index": index}, question, seconds)
            answer = entries(found.head, scores=list, facts=list, counts=list, is_alone=bool)
            scores = from_json(answer["scores"], len(group.rollouts))
            facts = facts_from_json(answer["facts"], len(group.rollouts))
            self._remember(facts)
            self._add(index, answer["counts"])
        except BaseException as error:
            await self.kill()  # after a cancellation too: its answer would be taken for the next one's
            if not isinstance(error, NoAnswer):
                raise
            fault = Fault(
                str(error), is_whole=True, is_spent=isinstance(error, TooLate), is_death=isinstance(error, Died)
            )
            return [fault] * len(group.rollouts)
        if not answer["is_alone"]:
            await self.kill()  # and with it the processes the reward left running
        for rollout, noted in zip(group.rollouts, facts, strict=True):
            rollout.facts |= noted
        return scores

    def _remember(self, facts: Sequence[Mapping[str, float]]) -> None:
        """Names of facts, of all workers: each is a metric of the run."""
        names = self._names.union(*facts)
        if len(names) > MOST_NAMES:
            raise NoAnswer(f"noted facts of over {MOST_NAMES} names in this run")
        self._names |= names

    def _add(self, index: int, counts: list[Any]) -> None:
        """What the process counted of its judges."""
        clients = tallying(self._rewards[index]) if self._rewards else []
        if len(counts) != len(clients):
            raise NoAnswer(f"answered the counts of {len(counts)} judges, need {len(clients)}")
        for client, told in zip(clients, counts, strict=True):
            client.add(told)

    async def kill(self) -> None:
        """End the worker and whatever it started; returns when it is gone."""
        await self._process.kill()


class WorkerPool:
    """At most `size` workers, started on demand and replaced when they die."""

    def __init__(self, rewards: Sequence[Reward], size: int) -> None:
        self._rewards = rewards
        self._setup = setup_of(rewards)
        self._free = asyncio.Semaphore(size)
        self._idle: list[Worker] = []
        self._names: set[str] = set()  # of facts that the rewards noted

    @asynccontextmanager
    async def lend(self, is_fresh: bool = False) -> AsyncIterator[Worker]:
        """A worker that is nobody else's meanwhile; a fresh one has scored nothing yet."""
        async with self._free:
            if is_fresh and self._idle:
                await self._idle.pop().kill()
            worker = await (self._started() if is_fresh else self._take())
            try:
                yield worker
            finally:
                if worker.is_alive:
                    self._idle.append(worker)
                else:
                    await worker.kill()  # one that answered twice is done for, and runs on

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().kill()

    async def _take(self) -> Worker:
        """The worker used last, so that a second one starts only when two are needed at once."""
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await worker.kill()
        return await self._started()

    async def _started(self) -> Worker:
        return await Worker.start(self._setup, self._rewards, self._names)


def _require_ready(answer: dict[str, Any], rewards: Sequence[Reward]) -> None:
    if "error" in answer:
        failed = entries(answer, index=int, error=str)
        name = type(rewards[failed["index"]]).__name__ if 0 <= failed["index"] < len(rewards) else "?"
        raise RewardError(
            f"reward {name} cannot be loaded in its worker process: {failed['error']}; it must be importable there"
        )
    entries(answer, ready=bool)
