"""Ask every reward about every attempt; what fails is a failed attempt, never a number.

Rewards that are not ours run in worker processes with a deadline. When a call for a whole group fails, its attempts
are asked about one by one, so that only the guilty ones fail; one that compares siblings says `is_relative = True`.
A completion that exhausts a scorer which marks others (`overruns.py`) does not fail: it earns what a wrong one earns.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from strop.capabilities import inside
from strop.errors import RewardError
from strop.filter.overruns import QUICK_SHARE, Overrun, Overruns, cleared, is_overrun, total
from strop.filter.paid_text import Paid
from strop.filter.reward_values import Fault, Mark, marked
from strop.filter.span_rewards import Places, misplaced, pay
from strop.filter.worker_pool import WorkerPool
from strop.roles import Reward
from strop.types import Group, Outcome, Trajectory


@dataclass(frozen=True)
class Scores:
    """How scoring went: attempts asked about, those that failed, why, and how often a reward broke its contract."""

    attempts: int
    reasons: Counter[str] = field(default_factory=Counter)
    breaches: int = 0
    overruns: int = 0  # completions that exhausted a reward and count as wrong

    @property
    def failed(self) -> int:
        return self.reasons.total()

    @property
    def is_broken(self) -> bool:
        """Whether a reward broke its contract for every attempt: a mistake in its code, not in the attempts."""
        return 0 < self.attempts == self.breaches


class Scorer:
    """The rewards of a run, and the workers they run in; workers start when they are first needed."""

    def __init__(self, rewards: Sequence[Reward], seconds: float = 10.0, workers: int = 2) -> None:
        self._rewards = dict(zip(reward_names(rewards), rewards, strict=True))
        self._relative = {name for name, reward in self._rewards.items() if is_relative(reward)}
        # rewards that compare siblings come last, so that no failed attempt is among those compared
        self._order = sorted(self._rewards, key=lambda name: name in self._relative)
        foreign = {name: reward for name, reward in self._rewards.items() if not is_inline(reward)}
        self._foreign = list(foreign)
        self._pool = WorkerPool(list(foreign.values()), workers)
        self._seconds = seconds
        self._known: dict[str, Trajectory] = {}  # by reward: a completion that it has marked quickly
        self.places: Places | None = None  # set by who has a tokenizer
        self.overruns = Overruns()  # set by who has a folder

    async def __call__(self, group: Group) -> Scores:
        """Fill `rewards` and `reward` of every attempt that counts, or make it FAILED.

        Attempts of an earlier wave keep what they have, but for rewards that compare siblings.
        """
        new = [attempt for attempt in group.scored if not attempt.rewards]
        values = {(t.id, name): value for t in group.scored for name, value in t.rewards.items()}
        faults = list[Fault]()
        for name in self._order:
            relevant = group.scored if name in self._relative else new
            left = [attempt for attempt in relevant if attempt.is_scored]
            for attempt, mark in zip(left, await self._marks(name, replace(group, trajectories=left)), strict=True):
                if isinstance(mark, Paid) and (problem := misplaced(attempt, mark)):
                    mark = Fault(problem, is_breach=True)
                if isinstance(mark, Overrun):
                    values[attempt.id, name] = mark.worth
                    attempt.error = f"reward {name}: {mark.text}"
                elif isinstance(mark, Fault):
                    faults.append(_fail(attempt, name, mark))
                else:
                    values[attempt.id, name] = self._paid(attempt, name, mark)
        for attempt in group.scored:
            attempt.rewards = {name: values[attempt.id, name] for name in self._rewards}
            attempt.reward = sum(self._rewards[name].weight * value for name, value in attempt.rewards.items())
        breaches = sum(fault.is_breach for fault in faults)
        overruns = sum(map(is_overrun, new))
        return Scores(len(new), Counter(fault.text for fault in faults), breaches, overruns)

    async def close(self) -> None:
        """End all workers."""
        await self._pool.close()
        self.overruns.close()

    def _paid(self, attempt: Trajectory, name: str, mark: float | Paid) -> float:
        """What a mark is worth in all; places that it names are noted on the attempt's turns."""
        if not isinstance(mark, Paid):
            return mark
        if self.places is None:
            raise RewardError(f"reward {name} pays places in replies, and nothing here knows where their tokens are")
        return pay(attempt, name, self._rewards[name].weight, mark, self.places)

    async def _marks(self, name: str, group: Group) -> list[Mark | Overrun]:
        """One of each attempt; an overrun on record is not asked about again."""
        if name not in self._foreign or name in self._relative:
            return [*await self._singled_out(name, group)]
        recorded = [self.overruns.known(name, attempt) for attempt in group.trajectories]
        left = [attempt for attempt, known in zip(group.trajectories, recorded, strict=True) if known is None]
        begun = time.monotonic()
        marks = await self._singled_out(name, replace(group, trajectories=left))
        is_quick = time.monotonic() - begun < self._seconds * QUICK_SHARE
        marked = [(attempt, mark) for attempt, mark in zip(left, marks, strict=True) if not isinstance(mark, Fault)]
        if marked and is_quick:
            self._known[name] = marked[0][0]
        values = [total(mark) for _, mark in marked]
        judged = (self._judged(name, attempt, mark, values) for attempt, mark in zip(left, marks, strict=True))
        found = iter(await asyncio.gather(*judged))
        return [next(found) if known is None else known for known in recorded]

    async def _judged(self, name: str, attempt: Trajectory, mark: Mark, siblings: Sequence[float]) -> Mark | Overrun:
        """A mark as it is; what ran out is tried against controls, the first of them in a fresh worker."""
        if not isinstance(mark, Fault) or not mark.is_spent:
            return mark
        fresh = iter([True])

        async def ask(each: Trajectory, seconds: float) -> Mark:
            async with self._pool.lend(is_fresh=next(fresh, False)) as worker:
                alone = Group(0, each.task, [each])
                return (await worker.ask(self._foreign.index(name), alone, seconds))[0]

        found = await cleared(ask, attempt, self._known.get(name), siblings, self._seconds)
        if isinstance(found, Overrun):
            self.overruns.keep(name, attempt, found)
        return found

    async def _singled_out(self, name: str, group: Group) -> list[Mark]:
        """The marks of a group; where a whole call failed, each attempt is asked about alone."""
        if not group.trajectories:
            return []
        marks = await self._ask(name, group)
        # a broken contract is nobody's guilt: alone, a reward that always returns one number would look right
        is_unclear = any(isinstance(mark, Fault) and mark.is_whole and not mark.is_breach for mark in marks)
        if not is_unclear or name in self._relative or len(marks) == 1:
            return marks
        alone = (self._ask(name, replace(group, trajectories=[one])) for one in group.trajectories)
        return [marks[0] for marks in await asyncio.gather(*alone)]

    async def _ask(self, name: str, group: Group) -> list[Mark]:
        if name not in self._foreign:
            return await marked(self._rewards[name], group, self._seconds)
        async with self._pool.lend() as worker:
            return await worker.ask(self._foreign.index(name), group, self._seconds)


def _fail(attempt: Trajectory, name: str, fault: Fault) -> Fault:
    """Take an attempt out of everything that learns; answers with the fault under the reward's name."""
    attempt.outcome = Outcome.FAILED
    attempt.error = f"reward {name}: {fault.text}"
    attempt.rewards, attempt.reward = {}, 0.0
    return replace(fault, text=attempt.error)


def is_inline(reward: Reward) -> bool:
    """Whether a reward and all it wraps is ours, pure and quick, and needs no process of its own."""
    return all(each.is_inline for each in inside(reward, Reward))


def is_relative(reward: Reward) -> bool:
    """Whether a reward compares siblings, so that it cannot be asked about one attempt alone."""
    return any(each.is_relative for each in inside(reward, Reward))


def reward_names(rewards: Sequence[Reward]) -> list[str]:
    """One name each: the reward's own `name`, or its class in snake case; later ones of a name are numbered."""
    names: list[str] = []
    for reward in rewards:
        plain = reward.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(reward).__name__).lower()
        names.append(next(name for name in _numbered(str(plain)) if name not in names))
    return names


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(2))
