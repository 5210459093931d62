"""TON: demonstrations with and without chains of thought, and their rewards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.single_turn import SingleTurn
from strop.errors import ConfigurationError
from strop.filter.rewards.format import Formatted
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.distill.ton import Skipped, ThoughtDropout
from strop.types import Group, Origin, Start, Task
from tests.building import make_group
from tests.clock import run_virtually
from tests.generate.talking import Recording, policy_of, save_folder

ENV = Arithmetic(2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_folder(tmp_path_factory.mktemp("model"))


def shown(folder: Path, agent: ThoughtDropout, task: Task, env: Arithmetic = ENV) -> tuple[str, tuple[float, ...]]:
    dialogue = policy_of(folder, Recording([])).dialogue(task, Start("0/0", 1))
    paid, _ = run_virtually(agent.rollout(task, dialogue, env.episode()))
    return dialogue.turns[-1].message.content, paid


def test_a_share_of_tasks_has_an_empty_chain_of_thought_and_the_same_answer(folder: Path) -> None:
    agent, tasks = ThoughtDropout(Demonstrate()), [ENV.task(index) for index in range(200)]
    dropped = [agent.is_dropped(task) for task in tasks]
    assert 75 < sum(dropped) < 125 and dropped == [agent.is_dropped(task) for task in tasks]
    assert dropped != [ThoughtDropout(Demonstrate(), seed=1).is_dropped(task) for task in tasks]
    for task, is_dropped in list(zip(tasks, dropped, strict=True))[:6]:
        said, paid = shown(folder, agent, task)
        assert paid == (1.0,) and said.endswith(f"</think>{task.answer}") and said.startswith("<think>")
        assert (said == f"<think></think>{task.answer}") is is_dropped
    assert agent.origin is Origin.TEACHER


def test_shares_of_0_and_1(folder: Path) -> None:
    task = ENV.task(0)
    assert shown(folder, ThoughtDropout(Demonstrate(), 0.0), task)[0] == ENV.solution(task)
    assert shown(folder, ThoughtDropout(Demonstrate(), 1.0), task)[0] == f"<think></think>{task.answer}"
    said, paid = shown(folder, ThoughtDropout(Demonstrate(), 0.0), task, Curt(2))
    assert (said, paid) == (f"<think></think>{task.answer}", (1.0,)), (
        "where nothing is dropped, tags are there all the same"
    )
    with pytest.raises(ConfigurationError, match=r"0 <= share <= 1, got 1\.5"):
        ThoughtDropout(Demonstrate(), 1.5)


@dataclass(frozen=True)
class Curt(Arithmetic):
    """An environment whose demonstrations have no chain of thought."""

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def solution(self, task: Task) -> str:
        return task.answer


@dataclass(frozen=True)
class Wrong(Arithmetic):
    """An environment that rejects its own demonstrations."""

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def solution(self, task: Task) -> str:
        return "<think>1+1=3</think>-1"


def test_a_demonstration_that_the_env_rejects_is_refused(folder: Path) -> None:
    for share in (0.0, 1.0):
        with pytest.raises(
            ConfigurationError, match=r"of arithmetic:2: the environment.s own demonstration earns only 0, need at"
        ):
            shown(folder, ThoughtDropout(Demonstrate(least=1.0), share), ENV.task(0), Wrong(2))


def said(*completions: str) -> Group:
    group = make_group([0.0] * len(completions))
    for rollout, completion in zip(group.rollouts, completions, strict=True):
        object.__setattr__(rollout.turns[0].message, "content", completion)
    return group


def test_an_empty_chain_of_thought_earns_the_same_and_is_counted() -> None:
    group = said("<think></think>7", "<think> </think>7", "<think>3+4=7 it is 7</think>7", "7", "<think>")
    assert Formatted()(group) == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert Skipped()(group) == [1.0, 1.0, 0.0, 0.0, 0.0] and Skipped().weight == 0.0
