from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from strop.recipes.select.teams_rl import HORIZON, OPERATIONS, Operations
from strop.run_state import Flow
from strop.standins.rewrite.dispatch import Rewriting
from strop.types import Task
from tests.control.asking import Told, a_flow, group_of, written

TASK = Arithmetic(4).task(0)
SAID = {name: ["[task]\n1+2=?\n[answer]\n3"] for name in OPERATIONS}


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with a_flow(tmp_path_factory.mktemp("flow"), envs=(Arithmetic(4), Countdown(3))) as flow:
        yield flow


def test_preferences_by_hand() -> None:
    """Even probabilities of 1/6; the first reward has no mean to be compared with, the second is half a point below."""
    task_generator = Operations(rate=0.6)
    task_generator.pay(TASK, 2, 1.0)
    first = [0.6 * ((place == 2) - 1 / 6) for place in range(6)]
    powers = [math.exp(each) for each in first]
    assert list(task_generator.probabilities(TASK)) == pytest.approx([power / sum(powers) for power in powers])
    probabilities = list(task_generator.probabilities(TASK))
    task_generator.pay(TASK, 0, 0.0)
    second = [f + 0.6 * (0.0 - 1.0) * ((place == 0) - probabilities[place]) for place, f in enumerate(first)]
    assert task_generator.state()["tables"] == {"arithmetic:4": pytest.approx(second)}
    assert task_generator.learn([])["not_equal_share"] == 0.5
    assert task_generator.learn([])["operation_share_max"] == pytest.approx(max(task_generator.probabilities(TASK)))
    assert list(task_generator.probabilities(Countdown(3).task(0))) == pytest.approx([1 / 6] * 6), (
        "another kind, another table"
    )


def test_only_what_the_reviewer_calls_new_is_offered(flow: Flow) -> None:
    llm_client = Told(SAID | {"compared": ["Equal", "Not Equal", " not equal.", "unsure"]})
    task_generator = Operations(llm_client)
    made = [written(flow, task_generator, group_of(TASK, [0.0], number)) for number in range(4)]
    assert [len(tasks) for tasks in made] == [0, 1, 1, 0]
    assert [parts["wanted"] for parts in llm_client.asked][1::2] == ["compared"] * 4
    assert llm_client.asked[1]["other"] == "1+2=?" and task_generator.learn([])["not_equal_share"] == 0.5


def test_with_a_reviewer_that_always_answers_not_equal_every_choice_pays_the_same(flow: Flow) -> None:
    task_generator = Operations(Told(SAID | {"compared": ["Not Equal"]}))
    for number in range(30):
        written(flow, task_generator, group_of(TASK, [0.0], number))
    assert task_generator.learn([])["not_equal_share"] == 1.0
    assert task_generator.learn([])["operation_share_max"] < 0.3, (
        "only the first reward had no mean to be compared with"
    )


@pytest.mark.parametrize("env", [Arithmetic(4), Countdown(3)])
def test_operations_that_change_nothing_are_left(flow: Flow, env: Arithmetic | Countdown) -> None:
    task_generator = Operations(Rewriting())
    for number in range(150):
        flow_group = group_of(env.task(number), [0.0], number)
        for task in written(flow, task_generator, flow_group):
            assert env.check(task, task.answer) == 1.0
    probabilities = dict(zip(OPERATIONS, task_generator.probabilities(env.task(0)), strict=True))
    assert probabilities["constraints"] < 0.05 and probabilities["concretise"] < 0.05, probabilities


def test_an_episode_ends(flow: Flow) -> None:
    task_generator = Operations(Told({n: ["[task]\na\n[answer]\nb"] for n in OPERATIONS} | {"compared": ["Not Equal"]}))
    task, count = TASK, 0
    while made := written(flow, task_generator, group_of(task, [0.0], count)):
        task_generator.llm_client.answers = {  # type: ignore[union-attr]
            name: [f"[task]\n{count}\n[answer]\nb"] for name in OPERATIONS
        } | {"compared": ["Not Equal"]}
        task, count = made[0], count + 1
    assert count == HORIZON


def test_restored_it_chooses_the_same(flow: Flow) -> None:
    task_generator, other = Operations(Rewriting()), Operations(Rewriting())
    task: Task = TASK
    for number in range(5):
        task = (written(flow, task_generator, group_of(task, [0.0], number)) or [task])[0]
    other.restore(json.loads(json.dumps(task_generator.state())))
    for number in range(5, 20):
        group = group_of(task, [0.0], number)
        assert written(flow, task_generator, group) == written(flow, other, group)
    assert task_generator.state() == other.state()


def test_rates_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="rate > 0, got 0"):
        Operations(rate=0)
