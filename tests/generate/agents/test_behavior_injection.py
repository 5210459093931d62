"""Behaviour injection: what is tried too early, what is gathered, and that the answer stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.errors import ConfigurationError
from strop.generate.agents.behavior_injection import Injected
from strop.generate.agents.demonstrator import Demonstrate
from strop.types import Message, Start, Task
from tests.building import make_group
from tests.clock import run_virtually
from tests.generate.talking import Recording, policy_of, save_folder
from tests.recipes.distill.test_ton import Wrong

CHAIN = "<think>12+30=42 42+5=47 47+9=56</think>56"
TASK = Task((Message("user", "?"),), "56", "test")


def test_everything_by_hand() -> None:
    """The last step is tried without the 47 it needs, twice; the second and the third gather 42 and 47."""
    both = Injected(Demonstrate(), 1.0, 1.0).injected(CHAIN, TASK)
    assert both == "<think>?+9=? no 12+30=42 ?+9=? no 42 42+5=47 47 47+9=56</think>56"
    assert Injected(Demonstrate(), 1.0, 0.0).injected(CHAIN, TASK).count(" no ") == 2
    assert Injected(Demonstrate(), 0.0, 1.0).injected(CHAIN, TASK) == (
        "<think>12+30=42 42 42+5=47 47 47+9=56</think>56"
    )
    assert Injected(Demonstrate(), 0.0, 0.0).injected(CHAIN, TASK) == CHAIN


def test_only_steps_that_stand_on_unsolved_ones_are_tried_too_early() -> None:
    """5+4 needs nothing of 1+2; 3*9 needs both, and gathers both; 3*3 gathers one value once."""
    graph = "<think>1+2=3 5+4=9 3*9=27</think>27"
    assert Injected(Demonstrate(), 1.0, 1.0).injected(graph, TASK) == (
        "<think>?*?=? no 1+2=3 3*?=? no 5+4=9 3 9 3*9=27</think>27"
    )
    square = "<think>1+2=3 9-6=3 3*3=9</think>9"
    assert Injected(Demonstrate(), 0.0, 1.0).injected(square, TASK) == square.replace("3*3", "3 3*3")
    free = "<think>1+2=3 5+4=9</think>9"
    assert Injected(Demonstrate(), 1.0, 1.0).injected(free, TASK) == free
    alone = "<think>1+2=3 0+9=9</think>9"
    assert Injected(Demonstrate(), 1.0, 1.0).injected(alone, TASK) == alone, "no step needs its own value"
    for other in ("56", "<think>it is 56</think>56", "<think>1+2=3"):
        assert Injected(Demonstrate(), 1.0, 1.0).injected(other, TASK) == other


def test_the_task_decides_and_each_comes_about_as_often_as_said() -> None:
    agent, tasks = Injected(Demonstrate(), 0.25, 0.0), [Arithmetic(3).task(index) for index in range(400)]
    chains = ["<think>1+2=3 3+4=7</think>7"] * 400
    found = [agent.injected(chain, task) for chain, task in zip(chains, tasks, strict=True)]
    assert found == [agent.injected(chain, task) for chain, task in zip(chains, tasks, strict=True)]
    assert sum(" no " in each for each in found) == pytest.approx(100, abs=30)
    both = Injected(Demonstrate(), 0.25, 0.5)
    longer = [both.injected("<think>1+2=3 3+4=7 7+8=15</think>15", task) for task in tasks]
    assert sum(" no 3 3+4" in each for each in longer) == pytest.approx(50, abs=25), "each by a probability of its own"


def test_the_env_accepts_what_is_shown_and_a_rejected_one_is_refused(tmp_path: Path) -> None:
    folder, agent = save_folder(tmp_path), Injected(Demonstrate(least=1.0), 1.0, 1.0)
    for env in (Arithmetic(5), Compose(2)):
        dialogue = policy_of(folder, Recording([])).dialogue(env.task(0), Start("0/0", 1))
        paid, _ = run_virtually(agent.rollout(env.task(0), dialogue, env.episode()))
        assert paid == (1.0,) and " no " in dialogue.turns[-1].message.content
    wrong = Wrong(2)
    dialogue = policy_of(folder, Recording([])).dialogue(wrong.task(0), Start("0/0", 1))
    with pytest.raises(ConfigurationError, match="own demonstration earns only 0, need at least 1"):
        run_virtually(agent.rollout(wrong.task(0), dialogue, wrong.episode()))
    with pytest.raises(ConfigurationError, match=r"explore 1\.5 and exploit 0\.25"):
        Injected(Demonstrate(), 1.5)


def test_it_says_how_many_explore() -> None:
    group = make_group([1.0, 1.0])
    object.__setattr__(group.rollouts[0].turns[0].message, "content", "<think>?+9=? no 1+2=3</think>3")
    object.__setattr__(group.rollouts[1], "turns", (make_group([1.0]).rollouts[0].turns[0],))
    assert Injected(Demonstrate()).learn([group]) == {"explored_share": 0.5}
