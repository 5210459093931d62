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
from strop.standins.rewrite.rewriting import Rewriting
from strop.types import Task
from tests.control.asking import Told, a_flow, group_of, written

TASK = Arithmetic(4).task(0)
SAID = {name: ["[task]\n1+2=?\n[answer]\n3"] for name in OPERATIONS}


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with a_flow(tmp_path_factory.mktemp("flow"), worlds=(Arithmetic(4), Countdown(3))) as flow:
        yield flow


def test_preferences_by_hand() -> None:
    """Even chances of 1/6; the first reward has no mean to be compared with, the second is half a point below."""
    writer = Operations(rate=0.6)
    writer.pay(TASK, 2, 1.0)
    first = [0.6 * ((place == 2) - 1 / 6) for place in range(6)]
    powers = [math.exp(each) for each in first]
    assert list(writer.chances(TASK)) == pytest.approx([power / sum(powers) for power in powers])
    chances = list(writer.chances(TASK))
    writer.pay(TASK, 0, 0.0)
    second = [f + 0.6 * (0.0 - 1.0) * ((place == 0) - chances[place]) for place, f in enumerate(first)]
    assert writer.state()["tables"] == {"arithmetic:4": pytest.approx(second)}
    assert writer.learn([])["not_equal_share"] == 0.5
    assert writer.learn([])["operation_share_max"] == pytest.approx(max(writer.chances(TASK)))
    assert list(writer.chances(Countdown(3).task(0))) == pytest.approx([1 / 6] * 6), "another kind, another table"


def test_only_what_the_reviewer_calls_new_is_offered(flow: Flow) -> None:
    adviser = Told(SAID | {"compared": ["Equal", "Not Equal", " not equal.", "unsure"]})
    writer = Operations(adviser)
    made = [written(flow, writer, group_of(TASK, [0.0], number)) for number in range(4)]
    assert [len(tasks) for tasks in made] == [0, 1, 1, 0]
    assert [parts["wanted"] for parts in adviser.asked][1::2] == ["compared"] * 4
    assert adviser.asked[1]["other"] == "1+2=?" and writer.learn([])["not_equal_share"] == 0.5


def test_with_a_reviewer_that_always_says_so_every_choice_pays_the_same(flow: Flow) -> None:
    writer = Operations(Told(SAID | {"compared": ["Not Equal"]}))
    for number in range(30):
        written(flow, writer, group_of(TASK, [0.0], number))
    assert writer.learn([])["not_equal_share"] == 1.0
    assert writer.learn([])["operation_share_max"] < 0.3, "only the first reward had no mean to be compared with"


@pytest.mark.parametrize("world", [Arithmetic(4), Countdown(3)])
def test_operations_that_change_nothing_are_left(flow: Flow, world: Arithmetic | Countdown) -> None:
    writer = Operations(Rewriting())
    for number in range(150):
        flow_group = group_of(world.task(number), [0.0], number)
        for task in written(flow, writer, flow_group):
            assert world.check(task, task.answer) == 1.0
    chances = dict(zip(OPERATIONS, writer.chances(world.task(0)), strict=True))
    assert chances["constraints"] < 0.05 and chances["concretise"] < 0.05, chances


def test_an_episode_ends(flow: Flow) -> None:
    writer = Operations(Told({n: ["[task]\na\n[answer]\nb"] for n in OPERATIONS} | {"compared": ["Not Equal"]}))
    task, count = TASK, 0
    while made := written(flow, writer, group_of(task, [0.0], count)):
        writer.adviser.answers = {  # type: ignore[union-attr]
            name: [f"[task]\n{count}\n[answer]\nb"] for name in OPERATIONS
        } | {"compared": ["Not Equal"]}
        task, count = made[0], count + 1
    assert count == HORIZON


def test_restored_it_chooses_the_same(flow: Flow) -> None:
    writer, other = Operations(Rewriting()), Operations(Rewriting())
    task: Task = TASK
    for number in range(5):
        task = (written(flow, writer, group_of(task, [0.0], number)) or [task])[0]
    other.restore(json.loads(json.dumps(writer.state())))
    for number in range(5, 20):
        group = group_of(task, [0.0], number)
        assert written(flow, writer, group) == written(flow, other, group)
    assert writer.state() == other.state()


def test_rates_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="rate > 0, got 0"):
        Operations(rate=0)
