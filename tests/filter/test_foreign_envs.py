"""Environments that are not ours are checked in a process that can be killed, whichever reward asks."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.errors import ConfigurationError
from strop.filter.judges.pairwise_judge import Graded
from strop.filter.rewards.from_environment import Checked, LastCompletion
from strop.filter.rewards.pairwise_vs_reference import Pairwise
from strop.types import Group, Message, Outcome, Rollout, Task
from tests.environments.foul import Foul
from tests.filter.test_scoring import _turn, outcomes, scored


@dataclass(frozen=True)
class Telling(Foul):
    """Its check says in which process it runs."""

    def check(self, task: Task, completion: str) -> float:
        return float(os.getpid())


@dataclass
class SlowToLoad:
    """Needs longer to load than a rollout may take."""

    is_open: bool = False

    def open_resources(self) -> None:
        time.sleep(1.5)
        self.is_open = True

    def first_wins(self, task: Task, first: str, second: str) -> float:
        if not self.is_open:
            self.open_resources()
        return 0.75


def group_in(env: Any, *completions: str) -> Group:
    task = env.task(0)
    return Group(0, task, [Rollout(r, task, (_turn(r),), Outcome.FINISHED) for r in completions])


@pytest.mark.parametrize("reward", [LastCompletion, Checked])
def test_a_foreign_check_runs_in_another_process(reward: Any) -> None:
    group = group_in(Telling(), "1")
    scored([reward((Telling(),))], group)
    (pid,) = outcomes(group)
    assert isinstance(pid, float) and pid > 0 and pid != os.getpid()


@pytest.mark.parametrize(
    "reward",
    [LastCompletion((Telling(),)), Checked((Telling(),)), Pairwise(Graded((Telling(),)))],
    ids=lambda r: type(r),
)
def test_nobody_gets_around_it(reward: Any) -> None:
    with pytest.raises(ConfigurationError, match="foul is not ours and runs only in a reward's process"):
        reward(group_in(Telling(), "1"))


def test_a_comparison_by_a_foreign_check_runs_in_another_process() -> None:
    env = ReasoningGym("chain_sum", chunk=64)
    group = group_in(env, env.task(0).answer, "no")
    scored([Pairwise(Graded((env,)))], group)
    best, worst = outcomes(group)
    assert best == pytest.approx(0.0) and isinstance(worst, float) and worst < -0.2


def test_our_own_envs_are_asked_inline() -> None:
    assert LastCompletion((Arithmetic(1),)).is_inline and not LastCompletion((Arithmetic(1), Telling())).is_inline
    assert not LastCompletion((ReasoningGym("n_queens"),)).is_inline


def test_a_env_whose_episode_pays_nothing_says_so() -> None:
    assert ReasoningGym.pays is False


def test_a_judge_is_loaded_on_no_rollouts_clock() -> None:
    task = Task((Message("user", "?"),), "four", "test")
    group = Group(0, task, [Rollout("a", task, (_turn("x"),), Outcome.FINISHED)])
    scored([Pairwise(SlowToLoad())], group, seconds=1.0)
    assert outcomes(group) == [0.0]
