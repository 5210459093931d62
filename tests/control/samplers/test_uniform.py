from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.types import Message, Task


@dataclass(frozen=True)
class Numbered(Environment):
    """An environment whose tasks are their index."""

    name: str
    level: int = 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return Task((Message("user", f"{heldout}"),), str(index), self.name)

    def episode(self) -> Episode:
        raise NotImplementedError

    def check(self, task: Task, completion: str) -> float:
        return float(completion == task.answer)


def drawn(sampler: Uniform, count: int) -> list[str]:
    tasks = [sampler.next(0, Counts()) for _ in range(count)]
    assert all(task.messages[0].content == "False" for task in tasks)  # never a held-out task
    return [f"{task.source}{task.answer}" for task in tasks]


def test_envs_take_turns_and_tasks_never_repeat() -> None:
    assert drawn(Uniform((Numbered("a"), Numbered("b"))), 6) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_goes_on_where_it_was() -> None:
    first = Uniform((Numbered("a"), Numbered("b"), Numbered("c")))
    drawn(first, 5)
    second = Uniform(first.envs)
    second.restore(json.loads(json.dumps(first.state())))
    assert drawn(second, 4) == drawn(first, 4) == ["c1", "a2", "b2", "c2"]


def test_refuses_no_env() -> None:
    with pytest.raises(ConfigurationError, match="got 0"):
        Uniform(())
