"""Rewards computed by the environment: episode rewards, check of the final answer, valid tool calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.roles import Environment, Reward
from strop.types import ZERO_TO_ONE, Group, Rollout, ScoreRange, Task
from strop.workers.foreign_checks import checked

if TYPE_CHECKING:
    from strop.run import Run

# An environment's own check as a reward in a killable process, for environments whose checker is not ours.


@dataclass(frozen=True)
class Checked(Reward):
    """Score of the last completion by its task's environment, from 0 to 1."""

    envs: tuple[Environment, ...]
    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ScoreRange()

    def open_resources(self) -> None:
        """Make one task of each environment, so that what it imports and reads is on no rollout's clock."""
        for env in self.envs:
            env.task(0)

    def __call__(self, group: Group) -> list[float]:
        env = self._env(group.task)
        return [checked(env, rollout.task, rollout.completion) for rollout in group.rollouts]

    def _env(self, task: Task) -> Environment:
        """The environment of the task's source, and of its level where several have that name."""
        named = [env for env in self.envs if env.name == task.source]
        if not named:
            raise ConfigurationError(
                f"Checked knows no environment {task.source!r}, only {', '.join(env.name for env in self.envs)}"
            )
        return next((env for env in named if env.level == task.level), named[0])


# What the environment itself paid, added up over the turns.


@dataclass(frozen=True)
class Earned(Reward):
    """Sum of a rollout's turn rewards; 0 if the environment gave none."""

    weight: float = 1.0  # of this reward beside others
    grades: ScoreRange | None = ZERO_TO_ONE  # sum of a failed episode, and of a solved one

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "outcome"  # in ledgers and metrics: the environment's own word on a rollout

    def __call__(self, group: Group) -> list[float]:
        return [float(sum(rollout.turn_rewards)) for rollout in group.rollouts]


# An environment's own check of the last completion, whatever was paid on the way.


@dataclass(frozen=True)
class LastCompletion(Reward):
    """Score of the last completion, from 0 to 1; in process if all environments are bundled, else in a killable
    process.
    """

    envs: tuple[Environment, ...]
    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ScoreRange()

    @property
    def is_inline(self) -> bool:
        return all(env.is_inline for env in self.envs)

    def __call__(self, group: Group) -> list[float]:
        env = env_of(self.envs, group.task)
        return [checked(env, rollout.task, rollout.completion) for rollout in group.rollouts]


# A little for every turn that the environment carried out: steps that are right in form, whatever comes of them.


@dataclass(frozen=True)
class CarriedOut(Reward):
    """`bonus` for each turn whose tool call succeeded; the last turn has no observation and does not count."""

    bonus: float = 0.1  # of one turn
    refusal: str = "error"  # how an answer begins that refuses a turn
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self.bonus * self._count(rollout) for rollout in group.rollouts]

    def _count(self, rollout: Rollout) -> int:
        heard = [[message for message in turn.told if message.role == "tool"] for turn in rollout.turns]
        return sum(bool(own) and not any(m.content.startswith(self.refusal) for m in own) for own in heard)


# In place of both, where tasks have no answers.


@dataclass(frozen=True)
class Unmeasured(Reward):
    """No score: the tasks have no answers. A run that learns from it is refused; with weight 0 it says nothing."""

    why: str  # of which table, and what its rows lack
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def problems(self, run: Run) -> list[str]:
        if not self.weight:
            return []
        return [
            f"nothing scores completions to {self.why}: name the columns (columns=PROMPT,ANSWER), set a reward "
            "(reward=FILE.py:FUNCTION), or take a recipe that needs no answers, such as rlsc, mm_upt or openrs"
        ]

    def __call__(self, group: Group) -> list[float]:
        return [0.0 for _ in group.rollouts]
