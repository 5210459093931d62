from __future__ import annotations

from collections import Counter

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.rag_rl import Scheduled, Shape
from tests.control.samplers.trying import draws, group_of, restored

ENVS = tuple(Arithmetic(level) for level in (1, 2, 3, 4))


def levels(shape: Shape, count: int, length: int = 8, **more: int) -> list[int]:
    return [task.level for task in draws(Scheduled(ENVS, length, shape, **more), count)]  # type: ignore[arg-type]


def test_the_papers_schedules_by_hand() -> None:
    assert levels("linear", 8) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert levels("linear", 6, 6) == [1, 2, 2, 3, 4, 4], "ceil(4 i / 6)"
    assert levels("min-max", 8) == [1, 1, 1, 1, 4, 4, 4, 4]
    assert levels("max", 8) == [4] * 8
    assert levels("linear", 11)[8:] == levels("min-max", 11)[8:] == [4, 4, 4], "what comes after is as the end"


@pytest.mark.parametrize("count", [4, 40, 400])
def test_linear_gives_every_level_the_same_share(count: int) -> None:
    assert Counter(levels("linear", count, count)) == dict.fromkeys((1, 2, 3, 4), count // 4)


@pytest.mark.parametrize("shape", ["linear", "min-max"])
def test_the_shuffled_control_has_the_same_levels_in_another_order(shape: Shape) -> None:
    plain, shuffled = levels(shape, 400, 400), levels(shape, 400, 400, is_shuffled=True, seed=3)
    assert Counter(plain) == Counter(shuffled) and plain != shuffled
    assert shuffled == levels(shape, 400, 400, is_shuffled=True, seed=3)
    assert shuffled != levels(shape, 400, 400, is_shuffled=True, seed=4)
    halves = [sum(shuffled[:200]), sum(shuffled[200:])]
    assert abs(halves[0] - halves[1]) < 90, "easy ones are mixed in everywhere"
    assert levels(shape, 800, 400, is_shuffled=True, seed=3) == 2 * shuffled


def test_tasks_of_a_level_come_in_order_and_state_is_restored() -> None:
    first = Scheduled(ENVS, 8, "linear", is_shuffled=True, seed=1)
    start = draws(first, 5)
    again = restored(Scheduled(ENVS, 8, "linear", is_shuffled=True, seed=1), first)
    whole = [*start, *draws(again, 20)]
    assert whole[5:] == draws(first, 20)
    for env in ENVS:
        own = [task for task in whole if task.level == env.level]
        assert own == [env.task(index) for index in range(len(own))]


def test_metrics_of_the_levels_of_a_batch() -> None:
    metrics = Scheduled(ENVS, 8).learn([group_of(ENVS[3].task(index), [0.0]) for index in range(4)])
    assert metrics["drawn/arithmetic-4"] == 1.0 and metrics["uneven"] == 0.75


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="got 0 and 'max'"):
        Scheduled(ENVS, 0, "max")
    with pytest.raises(ConfigurationError, match="got 8 and 'up'"):
        Scheduled(ENVS, 8, "up")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="differ in name or level"):
        Scheduled((), 8)
