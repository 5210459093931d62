"""Scoring of rollouts by all rewards of a run; an error fails the rollout and never becomes a number.

User-supplied rewards run in worker processes with a deadline. If a call for a whole group fails, its rollouts are
scored one by one, so that only the culprits fail; rewards that compare siblings set `is_relative = True`. A completion
that exhausts a scorer which works for others (`overruns.py`) does not fail: it earns the reward of a wrong one.
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
from strop.filter.overruns import FAST_SHARE, Overrun, Overruns, cleared, cleared_siblings, is_overrun
from strop.filter.paid_text import Paid, total
from strop.filter.reward_values import Fault, Score, keep_successes, scored
from strop.filter.span_rewards import Places, misplaced, pay
from strop.filter.worker_pool import WorkerPool
from strop.roles import Reward
from strop.types import SUCCESS, Group, Outcome, Rollout


@dataclass(frozen=True)
class Scores:
    """Result of scoring: rollouts scored, failures with reasons, and violations of a reward's contract."""

    rollouts: int
    reasons: Counter[str] = field(default_factory=Counter)
    breaches: int = 0
    overruns: int = 0  # completions that exhausted a reward and count as wrong

    @property
    def failed(self) -> int:
        return self.reasons.total()

    @property
    def is_broken(self) -> bool:
        """Whether a reward broke its contract for every rollout: a mistake in its code, not in the rollouts."""
        return 0 < self.rollouts == self.breaches


class Scorer:
    """Rewards of a run and their worker processes, which start when first needed."""

    def __init__(self, rewards: Sequence[Reward], seconds: float = 10.0, workers: int = 2) -> None:
        self._rewards = dict(zip(reward_names(rewards), rewards, strict=True))
        self._relative = {name for name, reward in self._rewards.items() if is_relative(reward)}
        # rewards that compare siblings come last, so that no failed rollout is among those compared
        self._order = sorted(self._rewards, key=lambda name: name in self._relative)
        # the one that says how right a rollout is: the first that does, or that holds one that does
        self._grader = next((name for name, reward in self._rewards.items() if grades(reward)), "")
        foreign = {name: reward for name, reward in self._rewards.items() if not is_inline(reward)}
        self._foreign = list(foreign)
        self._pool = WorkerPool(list(foreign.values()), workers)
        self._seconds = seconds
        self._known: dict[str, Rollout] = {}  # by reward: a completion that it has scored quickly
        self.places: Places | None = None  # set by who has a tokenizer
        self.overruns = Overruns()  # set by who has a folder

    async def __call__(self, group: Group) -> Scores:
        """Fill `rewards` and `reward` of every rollout that counts, or make it FAILED.

        Rollouts of an earlier wave keep what they have, but for rewards that compare siblings.
        """
        new = [rollout for rollout in group.scored if not rollout.rewards]
        values = {(t.id, name): value for t in group.scored for name, value in t.rewards.items()}
        faults = list[Fault]()
        for name in self._order:
            relevant = group.scored if name in self._relative else new
            left = [rollout for rollout in relevant if rollout.is_scored]
            for rollout, score in zip(left, await self._graded(name, replace(group, rollouts=left)), strict=True):
                if isinstance(score, Paid) and (problem := misplaced(rollout, score)):
                    score = Fault(problem, is_breach=True)
                if isinstance(score, Overrun):
                    values[rollout.id, name] = score.worth
                    rollout.error = f"reward {name}: {score.text}"
                elif isinstance(score, Fault):
                    faults.append(_fail(rollout, name, score))
                else:
                    values[rollout.id, name] = self._paid(rollout, name, score)
        for rollout in group.scored:
            rollout.rewards = {name: values[rollout.id, name] for name in self._rewards}
            rollout.reward = sum(self._rewards[name].weight * value for name, value in rollout.rewards.items())
        breaches = sum(fault.is_breach for fault in faults)
        overruns = sum(map(is_overrun, new))
        return Scores(len(new), Counter(fault.text for fault in faults), breaches, overruns)

    async def close(self) -> None:
        """End all workers."""
        await self._pool.close()
        self.overruns.close()

    def _paid(self, rollout: Rollout, name: str, score: float | Paid) -> float:
        """What a score is worth in all; places that it names are noted on the rollout's turns."""
        if not isinstance(score, Paid):
            return score
        if self.places is None:
            raise RewardError(
                f"reward {name} pays spans of completions, and no tokenizer here says which tokens they are"
            )
        return pay(rollout, name, self._rewards[name].weight, score, self.places)

    async def _graded(self, name: str, group: Group) -> list[Score | Overrun]:
        """Scores of one reward; only from the one that grades, rollouts keep how right they are."""
        known = [rollout.facts.pop(SUCCESS, None) for rollout in group.rollouts]
        scores = await self._scores(name, group)
        for rollout, before, score in zip(group.rollouts, known, scores, strict=True):
            if name != self._grader:
                rollout.facts.pop(SUCCESS, None)
                rollout.facts |= {} if before is None else {SUCCESS: before}
            elif isinstance(score, Overrun):
                rollout.facts[SUCCESS] = 0.0
            elif isinstance(score, Fault):
                rollout.facts.pop(SUCCESS, None)
            else:
                keep_successes(self._rewards[name], [rollout], [score])
        return scores

    async def _scores(self, name: str, group: Group) -> list[Score | Overrun]:
        """One of each rollout; an overrun on record is not asked about again.

        Rewards that wait in this process, for judges, have no control at their deadline: a judge that is late is at
        fault, since it is asked about no more text than it takes.
        """
        if name in self._relative:
            return await self._compared(name, group)
        if name not in self._foreign:
            here = await self._singled_out(name, group)
            known = [total(score) for score in here if not isinstance(score, Fault)]
            return [await self._judged(name, *each, known) for each in zip(group.rollouts, here, strict=True)]
        recorded = [self.overruns.known(name, rollout) for rollout in group.rollouts]
        left = [rollout for rollout, known in zip(group.rollouts, recorded, strict=True) if known is None]
        begun = time.monotonic()
        scores = await self._singled_out(name, replace(group, rollouts=left))
        is_fast = time.monotonic() - begun < self._seconds * FAST_SHARE
        scored = [(rollout, score) for rollout, score in zip(left, scores, strict=True) if not isinstance(score, Fault)]
        if scored and is_fast:
            self._known[name] = scored[0][0]
        values = [total(score) for _, score in scored]
        judged = (self._judged(name, rollout, score, values) for rollout, score in zip(left, scores, strict=True))
        found = iter(await asyncio.gather(*judged))
        return [next(found) if known is None else known for known in recorded]

    async def _judged(self, name: str, rollout: Rollout, score: Score, siblings: Sequence[float]) -> Score | Overrun:
        """A score as it is; what ran out is tried against controls, the first of them in a fresh worker."""
        if not isinstance(score, Fault) or not score.is_spent:
            return score
        fresh = iter([True])

        async def ask(each: Rollout, seconds: float) -> Score:
            alone = Group(0, each.task, [each])
            if name not in self._foreign:
                return (await scored(self._rewards[name], alone, seconds))[0]
            async with self._pool.lend(is_fresh=next(fresh, False)) as worker:
                return (await worker.ask(self._foreign.index(name), alone, seconds))[0]

        found = await cleared(ask, rollout, self._known.get(name), siblings, self._seconds)
        if isinstance(found, Overrun):
            self.overruns.keep(name, rollout, found)
        return found

    async def _compared(self, name: str, group: Group) -> list[Score | Overrun]:
        """The scores of siblings that are compared; where they exhaust the reward, each is tried beside controls."""
        scores = await self._singled_out(name, group)
        if not any(isinstance(score, Fault) and score.is_spent for score in scores):
            return [*scores]

        async def ask(rollouts: Sequence[Rollout], seconds: float) -> list[Score]:
            beside = replace(group, rollouts=[*rollouts])
            if name not in self._foreign:
                return await scored(self._rewards[name], beside, seconds)
            async with self._pool.lend() as worker:
                return await worker.ask(self._foreign.index(name), beside, seconds)

        return await cleared_siblings(ask, group.rollouts, scores, self._seconds)

    async def _singled_out(self, name: str, group: Group) -> list[Score]:
        """The scores of a group; where a whole call failed, each rollout is asked about alone."""
        if not group.rollouts:
            return []
        scores = await self._ask(name, group)
        # a broken contract is nobody's guilt: alone, a reward that always returns one number would look right
        is_unclear = any(isinstance(score, Fault) and score.is_whole and not score.is_breach for score in scores)
        if not is_unclear or name in self._relative or len(scores) == 1:
            return scores
        alone = (self._ask(name, replace(group, rollouts=[one])) for one in group.rollouts)
        return [scores[0] for scores in await asyncio.gather(*alone)]

    async def _ask(self, name: str, group: Group) -> list[Score]:
        if name not in self._foreign:
            return await scored(self._rewards[name], group, self._seconds)
        async with self._pool.lend() as worker:
            return await worker.ask(self._foreign.index(name), group, self._seconds)


def _fail(rollout: Rollout, name: str, fault: Fault) -> Fault:
    """Take a rollout out of everything that learns; answers with the fault under the reward's name."""
    rollout.outcome = Outcome.FAILED
    rollout.error = f"reward {name}: {fault.text}"
    rollout.rewards, rollout.reward = {}, 0.0
    return replace(fault, text=rollout.error)


def is_inline(reward: Reward) -> bool:
    """Whether a reward and all it wraps is ours, pure and fast, and needs no process of its own."""
    return all(each.is_inline for each in inside(reward, Reward))


def is_relative(reward: Reward) -> bool:
    """Whether a reward compares siblings, so that it cannot be asked about one rollout alone."""
    return any(each.is_relative for each in inside(reward, Reward))


def grades(reward: Reward) -> bool:
    """Whether a reward, or one that it holds, says how right a rollout is."""
    return any(each.grades is not None for each in inside(reward, Reward))


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
