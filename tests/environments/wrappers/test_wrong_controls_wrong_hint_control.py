"""Hints of another task, for negative controls: never of the task itself, always the same."""

from __future__ import annotations

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.lookup import other_task
from strop.environments.wrappers.wrong_controls import Misguided
from strop.errors import ConfigurationError


def test_hints_are_of_another_task_and_all_else_is_as_it_was() -> None:
    inner = Arithmetic(4)
    env = Misguided(inner)
    for index in range(20):
        task = env.task(index)
        other = other_task((inner,), task)
        assert task == inner.task(index) and other.id != task.id
        assert env.hint(task, 2) == inner.hint(other, 2) != inner.hint(task, 2)
        assert env.check(task, inner.solution(task)) == 1.0
    assert (env.name, env.level, env.pays, env.is_inline) == ("arithmetic", 4, True, True)
    assert env.task(3, heldout=True) == inner.task(3, heldout=True) and env.num_tasks() is None
    assert env.answer("<think>1</think>2") == "2"


def test_a_env_without_hints_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Misguided needs an environment with hints, and keyvalue gives none"):
        Misguided(KeyValue(2))
