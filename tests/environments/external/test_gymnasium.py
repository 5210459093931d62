"""Episodes of Gymnasium as environments: seeds are tasks, actions are words, and rewards are their own."""

from __future__ import annotations

import importlib.util

import pytest

from strop.environments.external.gymnasium import GymText
from strop.environments.isolation.subprocess import Apart
from strop.errors import ConfigurationError
from strop.recipes.environments import parse_envs
from strop.types import Observation
from tests.environments.playing import replied

has_gymnasium = importlib.util.find_spec("gymnasium") is not None
needs = pytest.mark.skipif(not has_gymnasium, reason="Gymnasium is not installed")


@pytest.mark.skipif(has_gymnasium, reason="Gymnasium is installed")
def test_without_gymnasium_it_is_said_what_helps() -> None:
    with pytest.raises(ConfigurationError, match=r"pip install 'strop\[gymnasium\]'"):
        GymText("FrozenLake-v1")


def texts(found: list[Observation]) -> list[str]:
    return [message.content for each in found for message in each.messages]


@needs
def test_a_lake_is_crossed_by_numbers() -> None:
    """Down, down, right, right, down, right on the map of four by four without slipping: 1 at the end, 0 before."""
    env = GymText("FrozenLake-v1", options={"is_slippery": False})
    task = env.task(0)
    assert "FFFH" in task.messages[0].content and task.messages[0].content.endswith("say an action from 0 to 3")
    found = replied(env, task, ["1", "<think>down</think>1", "north", "2", "9", "2", "1", "2"])
    assert [each.reward for each in found] == [0.0] * 7 + [1.0] and [each.done for each in found] == [False] * 7 + [
        True
    ]
    assert texts(found)[2] == texts(found)[4] == "say an action from 0 to 3"


@needs
def test_a_seed_is_a_task_and_sides_have_different_ones() -> None:
    env = GymText("Blackjack-v1")
    seeds = {(heldout, env.task(index, heldout).answer) for index in range(20) for heldout in (False, True)}
    assert len({seed for _, seed in seeds}) == 40
    task = env.task(3)
    assert task == env.task(3) and task.messages[0].content.startswith("[")
    first, again = (replied(env, task, ["0"]) for _ in range(2))
    assert first[0].done and first[0].reward == again[0].reward and first[0].reward in (-1.0, 0.0, 1.0, 1.5)


@needs
def test_turns_and_what_cannot_be_said() -> None:
    found = replied(GymText("FrozenLake-v1", turns=2), GymText("FrozenLake-v1").task(0), ["x", "x"])
    assert [each.done for each in found] == [False, True]
    with pytest.raises(ConfigurationError, match="only those that are numbered"):
        GymText("Pendulum-v1")
    with pytest.raises(ConfigurationError, match="cannot make NoSuchGame-v0"):
        GymText("NoSuchGame-v0")
    with pytest.raises(ConfigurationError, match="turns >= 1, got 0"):
        GymText("Blackjack-v1", turns=0)
    with pytest.raises(ConfigurationError, match=r"reward its tasks with Earned"):
        GymText("Blackjack-v1").check(GymText("Blackjack-v1").task(0), "1")
    assert parse_envs("gymnasium/Blackjack-v1", 3) == (Apart(GymText("Blackjack-v1", 3)),)
