"""Unit test reward for programs (AceCoder, 2502.01718); tests run concurrently in the sandbox.

Papers: acecoder
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from strop.environments.code.cases import cases_of
from strop.environments.code_execution import Trials
from strop.environments.needs import TESTS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of
from strop.roles import Environment, Reward
from strop.types import Group, Rollout, ScoreRange

FACT = "passed"  # share of the tests


@dataclass(frozen=True)
class PassedTests(Reward):
    """all: 1 if every test passes, else 0. share: the share of tests passed, which special cases can exploit."""

    form: Literal["all", "share"] = "all"
    trials: Trials = field(default_factory=Trials)
    weight: float = 1.0
    envs: tuple[Environment, ...] = ()  # whose tasks have tests; empty: all of the run

    grades: ClassVar[ScoreRange | None] = ScoreRange()
    is_inline: ClassVar[bool] = True  # it waits, and the sandbox does the work
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TESTS,)

    def __post_init__(self) -> None:
        if self.form not in ("all", "share"):
            raise ConfigurationError(f"PassedTests has the forms all and share, got {self.form!r}")

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> float:
        trial = await self.trials.of(rollout.completion, cases_of(rollout.task))
        rollout.facts |= {FACT: trial.share, **trial.facts}
        return trial.share if self.form == "share" else float(trial.is_right)
