"""Rewards of given completions outside of a run: in worker processes that can be killed, or as a run computes them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.attack.untrusted_tasks import places, said
from strop.capabilities import Closes, inside, outermost
from strop.environments.code_execution import Trials
from strop.environments.isolation.pool import Pooled
from strop.environments.isolation.subprocess import Apart
from strop.filter.paid_text import Paid
from strop.filter.scoring import Scorer, is_relative, reward_names
from strop.roles import Environment, Reward
from strop.types import Group, Rollout, Task


@dataclass(frozen=True)
class InWorker(Reward):
    """Reward in a worker process, also where it calls itself inline, because it is not trusted yet."""

    inner: Reward

    is_inline: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return reward_names([self.inner])[0]

    @property
    def weight(self) -> float:
        return self.inner.weight

    def __call__(self, group: Group) -> Sequence[float | Paid] | Awaitable[Sequence[float | Paid]]:
        return self.inner(group)


@dataclass
class AskedRewards:
    """Rewards and the environment they score; the environment runs in a separate process unless it is strop's own.

    `is_apart`: so do rewards that call themselves inline.
    """

    rewards: Sequence[Reward]
    env: Environment
    seconds: float = 5.0  # for each completion
    is_apart: bool = True
    scorer: Scorer = field(init=False, repr=False)
    apart: Environment = field(init=False, repr=False)  # where episodes are played
    is_compared: bool = field(init=False)
    _count: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        # a worker may leave no process behind, and what a sandbox runs is held by it already
        rewards = [InWorker(each) if self.is_apart and not has_sandbox(each) else each for each in self.rewards]
        self.scorer = Scorer(rewards, self.seconds, workers=1)
        self.scorer.places = places
        self.apart = self.env if _is_apart(self.env) else Apart(self.env, self.seconds)
        self.is_compared = any(map(is_relative, self.rewards))

    async def episodes(self, task: Task, texts: Sequence[str]) -> list[Rollout]:
        """A rollout for each text, not yet paid."""
        return [await said(self.apart, task, text, self.seconds) for text in texts]

    async def paid(self, task: Task, rollouts: Sequence[Rollout]) -> list[Rollout]:
        """Copies of these, paid as one group."""
        group = [replace(each, id=f"probe/{self._next()}", rewards={}) for each in rollouts]
        await self.scorer(Group(0, task, group))
        return group

    async def earned(self, task: Task, texts: Sequence[str], beside: Sequence[Rollout] = ()) -> list[float | None]:
        """What texts earn; where rewards compare, each alone among those `beside` it."""
        rollouts = await self.episodes(task, texts)
        if not self.is_compared:
            return [pay_of(each) for each in await self.paid(task, rollouts)]
        return [pay_of((await self.paid(task, [*beside, each]))[-1]) for each in rollouts]

    def answer(self, text: str) -> str:
        """In one spelling; an environment that is not ours is not asked in this process, and a text stands as it is."""
        if not self.env.is_inline:
            return text
        try:
            return self.env.answer(text)
        except Exception:
            return ""  # it finds none

    async def close(self) -> None:
        await self.scorer.close()
        for _, each in outermost((tuple(self.rewards), self.apart), Closes):
            await each.close()

    def _next(self) -> int:
        self._count += 1
        return self._count


def _is_apart(env: Environment) -> bool:
    """Whether its episodes may be played as they are: strop's own, quick or without a judgement; or elsewhere."""
    if isinstance(env, Apart | Pooled) or has_sandbox(env):
        return True
    parts = inside(env, Environment)
    return all(type(each).__module__.startswith("strop.") and (each.is_inline or not each.pays) for each in parts)


def pay_of(rollout: Rollout) -> float | None:
    """Its reward; None where it failed."""
    return rollout.reward if rollout.is_scored else None


def has_sandbox(part: object) -> bool:
    return bool(inside(part, Trials))
