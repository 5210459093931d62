"""Replay of a fixed share of recent groups: how many, which, how old."""

from __future__ import annotations

from collections import Counter

import pytest

from strop.errors import ConfigurationError
from strop.recipes.select.dots_rr import RecentShare
from strop.types import Group, Task


def group(number: int, name: str = "") -> Group:
    return Group(number, Task((), "", "env", id=name or str(number)), [])


def numbers(groups: list[Group] | None) -> list[int]:
    assert groups is not None
    return [each.number for each in groups]


def stepped(buffer: RecentShare, step: int, count: int = 2) -> list[int]:
    for number in range(step * count, (step + 1) * count):
        buffer.add(group(number))
    return numbers(buffer.sample(count, step))


def test_the_first_step_is_new_alone_and_later_ones_have_their_share_of_old() -> None:
    buffer = RecentShare(fresh=1 / 3)
    assert stepped(buffer, 0) == [0, 1]
    assert stepped(buffer, 1) == [2, 3, 0, 1], "as few as there are"
    for step in range(2, 6):
        chosen = stepped(buffer, step)
        assert chosen[:2] == [2 * step, 2 * step + 1] and len(chosen) == 6 == len(set(chosen))
        assert max(chosen[2:]) < 2 * step


def test_all_fresh_is_no_replay() -> None:
    buffer = RecentShare(fresh=1.0)
    assert [stepped(buffer, step) for step in range(3)] == [[0, 1], [2, 3], [4, 5]]


def test_no_group_is_older_than_the_buffer_is_large() -> None:
    """6 groups kept, 2 new ones a step: a group sampled at step t was new at step t - 3 or later."""
    buffer = RecentShare(capacity=6)
    chosen = [number for step in range(40) for number in [n - 2 * step for n in stepped(buffer, step)[2:]]]
    assert min(chosen) == -6 and set(Counter(chosen)) == set(range(-6, 0))


def test_old_groups_are_sampled_uniformly() -> None:
    found = Counter[int]()
    for seed in range(1200):
        buffer = RecentShare(capacity=6, seed=seed)
        for step in range(4):
            chosen = stepped(buffer, step)
        found.update(chosen[2:])
    assert set(found) == set(range(6)) and all(abs(count - 400) < 75 for count in found.values())


def test_of_a_task_that_came_back_the_newest_group_is_kept() -> None:
    buffer = RecentShare(fresh=1 / 3)
    for number, name in enumerate(("a", "b", "a", "c", "d", "e")):
        buffer.add(group(number, name))
    numbers(buffer.sample(4, 0))
    assert sorted(numbers(buffer.sample(2, 1))[2:]) == [1, 2, 3]


def test_too_few_new_ones_are_waited_for() -> None:
    buffer = RecentShare()
    buffer.add(group(0))
    assert buffer.sample(2, 0) is None and len(buffer) == 1
    with pytest.raises(ValueError, match="already"):
        buffer.add(group(0))


def test_a_restored_buffer_samples_the_same() -> None:
    first, second = RecentShare(capacity=5), RecentShare(capacity=5)
    for step in range(3):
        stepped(first, step)
    first.add(group(6))
    second.restore(first.state(), group)
    for buffer in (first, second):
        buffer.add(group(7))
    assert len(first) == len(second) == 2
    assert numbers(first.sample(2, 3)) == numbers(second.sample(2, 3))
    assert first.state() == second.state()


def test_shares_of_nothing_are_refused() -> None:
    for wrong in ({"fresh": 0.0}, {"fresh": 1.5}, {"capacity": -1}):
        with pytest.raises(ConfigurationError, match="RecentShare needs"):
            RecentShare(**wrong)  # type: ignore[arg-type]
