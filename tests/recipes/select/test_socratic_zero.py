from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.recipes.select.socratic_zero import FromFailures
from strop.run_state import Flow
from strop.standins.rewrite.dispatch import Rewriting
from strop.stats.task_lineage import ancestor
from strop.types import Group, Message, Origin, Task
from tests.control.asking import Told, group_of

TASK = Arithmetic(4).task(0)
SAID = "[task]\n1+2=?\n[answer]\n3"


def spoken(group: Group, completions: list[str]) -> Group:
    for rollout, text in zip(group.rollouts, completions, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", text)),)
    return group


def ask(flow: Flow, task_generator: FromFailures, group: Group) -> list[Task]:
    return asyncio.run(task_generator(group, flow.player(group)))


@pytest.mark.parametrize(("right", "of", "utility"), [(1, 2, 1.0), (1, 4, 0.458), (0, 4, 0.044), (4, 4, 0.044)])
def test_utility_by_hand(right: int, of: int, utility: float) -> None:
    assert FromFailures().utility(group_of(TASK, [1.0] * right + [0.0] * (of - right))) == pytest.approx(
        utility, abs=5e-4
    )
    assert FromFailures().utility(group_of(TASK, [])) == 0.0


def test_questions_follow_from_the_completions_that_were_wrong(flow: Flow) -> None:
    llm_client = Told({"mended": [SAID]})
    group = spoken(group_of(TASK, [1.0, 0.0, 0.0, 1.0]), ["right", "wrong", "also wrong", "right"])
    made = ask(flow, FromFailures(llm_client, questions=5), group)
    assert [parts["completion"] for parts in llm_client.asked] == ["wrong", "also wrong"]
    assert llm_client.asked[0]["task"] == prompt_of(TASK) and llm_client.asked[0]["answer"] == TASK.answer
    assert [(task.answer, ancestor(task)) for task in made] == [("3", TASK.id)] * 2
    assert len(ask(flow, FromFailures(llm_client, questions=1), group)) == 1
    assert ask(flow, FromFailures(llm_client), group_of(TASK, [1.0, 1.0])) == []


def test_guided_rollouts_are_no_failures_of_the_policy(flow: Flow) -> None:
    group = group_of(TASK, [1.0, 0.0, 0.0, 1.0])
    for rollout in group.rollouts[1:3]:
        rollout.origin = Origin.GUIDED
    assert ask(flow, FromFailures(Told({"mended": [SAID]}), 4, target=1.0), group) == []


def test_the_probability_is_the_utility(flow: Flow) -> None:
    """One of four right: 0.458."""
    llm_client = Told({"mended": [SAID]})
    made = [ask(flow, FromFailures(llm_client), group_of(TASK, [1.0, 0.0, 0.0, 0.0], number)) for number in range(400)]
    assert sum(map(len, made)) / 400 == pytest.approx(0.458, abs=0.08)


def test_the_stand_in_asks_again_what_went_wrong(flow: Flow) -> None:
    task = Task((Message("user", "47+12+30=?"),), "89", "arithmetic", 4)
    group = spoken(group_of(task, [1.0, 0.0]), ["89", "<think>47+12=58 58+30=88</think>88"])
    (made,) = ask(flow, FromFailures(Rewriting()), group)
    assert prompt_of(made).startswith("47+12+") and Arithmetic(4).check(made, Arithmetic(4).solution(made)) == 1.0


def test_bounds_are_checked() -> None:
    for fields in ({"questions": 0}, {"target": 1.2}, {"width": 0.0}):
        with pytest.raises(ConfigurationError, match="FromFailures needs"):
            FromFailures(**fields)  # type: ignore[arg-type]
