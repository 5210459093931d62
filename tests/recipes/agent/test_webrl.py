from __future__ import annotations

import asyncio

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.agent.webrl import FromFailed
from strop.run_state import Flow
from strop.stats.task_lineage import ancestor
from strop.types import Group, Origin, Task
from tests.control.asking import Told, group_of

TASK = Arithmetic(4).task(0)
SAID = "[task]\n1+2=?\n[answer]\n3"


def ask(flow: Flow, task_generator: FromFailed, group: Group) -> list[Task]:
    return asyncio.run(task_generator(group, flow.player(group)))


def test_new_tasks_follow_unsolved_ones(flow: Flow) -> None:
    llm_client = Told({"similar": [SAID], "easier": [SAID]})
    task_generator = FromFailed(llm_client, tasks=3)
    assert ask(flow, task_generator, group_of(TASK, [0.0, 1.0])) == [] and not llm_client.asked
    assert ask(flow, task_generator, group_of(TASK, [])) == []
    made = ask(flow, task_generator, group_of(TASK, [0.0, 0.0]))
    assert [(task.answer, ancestor(task)) for task in made] == [("3", TASK.id)] * 3
    helped = group_of(TASK, [0.0, 1.0])
    helped.rollouts[1].origin = Origin.GUIDED
    assert len(ask(flow, task_generator, helped)) == 3, "a success with help does not count"


def test_both_kinds_of_rewriting_occur(flow: Flow) -> None:
    llm_client = Told({"similar": [SAID], "easier": [SAID]})
    for number in range(100):
        ask(flow, FromFailed(llm_client, 1), group_of(TASK, [0.0], number))
    assert 30 < sum(parts["wanted"] == "easier" for parts in llm_client.asked) < 70


def test_at_least_one() -> None:
    with pytest.raises(ConfigurationError, match="tasks >= 1, got 0"):
        FromFailed(tasks=0)
