"""An environment's own check as a reward, chosen by the task's source and level."""

from __future__ import annotations

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked
from strop.types import Group, Outcome, Rollout
from tests.filter.test_scoring import _turn


def test_each_task_is_checked_by_its_own_env() -> None:
    envs = (Arithmetic(1), Compose(1))
    for env in envs:
        task = env.task(0)
        completions = (task.answer, f"<think>so</think>{task.answer}", "wrong")
        group = Group(0, task, [Rollout(r, task, (_turn(r),), Outcome.FINISHED) for r in completions])
        assert Checked(envs)(group) == [1.0, 1.0, 0.0]


def test_a_task_from_elsewhere_is_refused() -> None:
    task = Compose(1).task(0)
    with pytest.raises(ConfigurationError, match="knows no environment 'compose', only arithmetic"):
        Checked((Arithmetic(1),))(Group(0, task, []))
