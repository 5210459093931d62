"""Programs paid for tests, as a reward that waits: numbers by hand, and whose fault it is where there is none."""

from __future__ import annotations

import asyncio

import pytest

from strop.environments.code.cases import Cases
from strop.environments.code_execution import Trials
from strop.errors import ConfigurationError
from strop.filter.rewards.unit_tests import PassedTests
from strop.filter.scoring import Scorer, Scores
from strop.sandbox.execution import Ending, Ran
from strop.types import Group, Message, Outcome, Task
from tests.filter.completions import said

TASK = Task((Message("user", "?"),), str(Cases("f", ([1], [2], [3], [4]), (2, 4, 6, 8))), "programs", 1)
COMPLETIONS = ("def f(x): return 2*x", "def f(x): return x if x>3 else 2*x", "f=3", "def f(x): return")


def scored(reward: PassedTests) -> tuple[Group, Scores]:
    group = said(TASK, *COMPLETIONS)

    async def asked() -> Scores:
        found = await Scorer([reward])(group)
        await reward.trials.close()
        return found

    return group, asyncio.run(asked())


def test_all_or_the_share() -> None:
    group, scores = scored(PassedTests())
    assert [rollout.reward for rollout in group.rollouts] == [1.0, 0.0, 0.0, 0.0] and not scores.failed
    assert [rollout.facts["passed"] for rollout in group.rollouts] == [1.0, 0.75, 0.0, 0.0]
    assert [rollout.facts["found/error"] for rollout in group.rollouts] == [0.0, 0.0, 1.0, 0.0]
    assert [rollout.reward for rollout in scored(PassedTests("share"))[0].rollouts] == [1.0, 0.75, 0.0, 0.0]
    with pytest.raises(ConfigurationError, match="forms all and share, got 'none'"):
        PassedTests("none")  # type: ignore[arg-type]


def test_a_sandbox_that_is_lost_fails_its_rollouts_and_pays_nobody() -> None:
    class Lost:
        async def run(self, driver: str, stdin: str, allowance: object) -> Ran:
            return Ran(Ending.LOST if "return 2*x" in stdin else Ending.FINISHED)

        async def close(self) -> None: ...

    trials = Trials()
    trials._sandboxes.append(Lost())  # type: ignore[arg-type]
    group, scores = scored(PassedTests(trials=trials))
    assert [rollout.outcome is Outcome.FAILED for rollout in group.rollouts] == [True, False, False, False]
    assert "could not run the program: lost" in group.rollouts[0].error
    assert scores.failed == 1 and [rollout.reward for rollout in group.scored] == [0.0, 0.0, 0.0]
