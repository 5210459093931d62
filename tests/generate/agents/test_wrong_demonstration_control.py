"""What is shown for a task is right for another one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.agents.wrong_demonstration_control import DemonstrateAnother
from strop.generate.rollout import play
from strop.roles import Environment
from strop.types import Message, Origin, Start, Task
from tests.generate.talking import Recording, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions


def shown(folder: Path, env: Environment) -> tuple[str, Origin]:
    policy = policy_of(save_folder(folder), Recording([]))
    agent = DemonstrateAnother((env,))
    rollout = asyncio.run(play(agent, env, policy.dialogue(env.task(3), Start("0", 0))))
    assert rollout.turn_rewards == () and rollout.num_sampled == 0
    return rollout.completion, rollout.origin


def test_it_is_right_for_another_task_and_nobody_pays_it(tmp_path: Path) -> None:
    env = Arithmetic(2)
    completion, origin = shown(tmp_path, env)
    answers = {env.solution(env.task(index)) for index in range(2000)}
    assert origin is Origin.TEACHER and env.check(env.task(3), completion) == 0.0
    assert completion in answers, "one of the sums of three digits"
    assert shown(tmp_path, env)[0] == completion


class Lone(Completions):
    """There is one task, and it can be shown."""

    def demonstrate(self) -> Message:
        return Message("assistant", "4")


@dataclass
class Mute(Completions):
    """There are many tasks, and nothing can be shown."""

    def task(self, index: int, heldout: bool = False) -> Task:
        return Task((Message("user", str(index)),), "4", "test")


def test_there_must_be_another_one_that_can_be_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="test:0 has no other task than"):
        shown(tmp_path, Lone(1))
    with pytest.raises(ConfigurationError, match=r"Mute has no demonstrate\(\)"):
        shown(tmp_path, Mute(1))
