"""Programs paid for tests, as a reward that waits: numbers by hand, and whose fault it is where there is none."""

from __future__ import annotations

import asyncio

import pytest

from strop.environments.code_execution import Cases, Trials
from strop.errors import ConfigurationError
from strop.filter.rewards.unit_tests import PassedTests
from strop.filter.scoring import Scorer, Scores
from strop.sandbox.execution import Ending, Ran
from strop.types import Group, Message, Outcome, Task
from tests.filter.replies import said

TASK = Task((Message("user", "?"),), str(Cases("f", ([1], [2], [3], [4]), (2, 4, 6, 8))), "programs", 1)
REPLIES = ("def f(x): return 2*x", "def f(x): return x if x>3 else 2*x", "f=3", "def f(x): return")


def scored(reward: PassedTests) -> tuple[Group, Scores]:
    group = said(TASK, *REPLIES)

    async def asked() -> Scores:
        found = await Scorer([reward])(group)
        await reward.trials.close()
        return found

    return group, asyncio.run(asked())


def test_all_or_the_share() -> None:
    group, scores = scored(PassedTests())
    assert [attempt.reward for attempt in group.trajectories] == [1.0, 0.0, 0.0, 0.0] and not scores.failed
    assert [attempt.facts["passed"] for attempt in group.trajectories] == [1.0, 0.75, 0.0, 0.0]
    assert [attempt.facts["found/error"] for attempt in group.trajectories] == [0.0, 0.0, 1.0, 0.0]
    assert [attempt.reward for attempt in scored(PassedTests("share"))[0].trajectories] == [1.0, 0.75, 0.0, 0.0]
    with pytest.raises(ConfigurationError, match="forms all and share, got 'none'"):
        PassedTests("none")  # type: ignore[arg-type]


def test_a_box_that_is_lost_fails_its_attempts_and_pays_nobody() -> None:
    class Lost:
        async def run(self, driver: str, stdin: str, allowance: object) -> Ran:
            return Ran(Ending.LOST if "return 2*x" in stdin else Ending.FINISHED)

        async def close(self) -> None: ...

    trials = Trials()
    trials._boxes.append(Lost())  # type: ignore[arg-type]
    group, scores = scored(PassedTests(trials=trials))
    assert [attempt.outcome is Outcome.FAILED for attempt in group.trajectories] == [True, False, False, False]
    assert "could not run the program: lost" in group.trajectories[0].error
    assert scores.failed == 1 and [attempt.reward for attempt in group.scored] == [0.0, 0.0, 0.0]
