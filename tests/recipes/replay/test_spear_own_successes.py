"""SPEAR's memory: who enters, when all come again, and who is forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.errors import ConfigurationError
from strop.recipes.replay.spear import OwnSuccesses
from strop.training.comparison_groups import optimizer_steps
from strop.types import Group, Origin
from tests.building import make_group


def group(number: int, rewards: list[float], version: int = 0) -> Group:
    return replace(make_group(rewards, number=number), version=version)


def drawn(buffer: OwnSuccesses, count: int, step: int) -> list[list[str]]:
    return [[rollout.id for rollout in each.rollouts] for each in buffer.sample(count, step) or []]


def test_rollouts_better_than_their_siblings_come_again_once_there_are_enough() -> None:
    buffer = OwnSuccesses(size=3)
    buffer.add(group(0, [1, 0, 0, 1]))
    buffer.add(group(1, [1, 1]))  # nobody is better than anybody
    assert drawn(buffer, 2, 0) == [["0-0", "0-1", "0-2", "0-3"], ["1-0", "1-1"]]
    buffer.add(group(2, [0.2, 0.4, 0.9], 1))
    assert drawn(buffer, 1, 1) == [["2-0", "2-1", "2-2"]], "two wait, and three are needed"
    buffer.add(group(3, [0, 1], 2))
    assert drawn(buffer, 1, 2) == [["3-0", "3-1"], ["0-0", "0-3"], ["2-2"]], "above .5, the mean"
    buffer.add(group(4, [0, 0], 3))
    assert drawn(buffer, 1, 3) == [["4-0", "4-1"]], "none comes a third time"
    assert sorted(buffer._held.old) == [3]


def test_times_trained_tell_what_is_replayed_from_what_is_new() -> None:
    buffer = OwnSuccesses(size=1)
    for number in range(2):
        buffer.add(group(number, [1, 0], number))
    assert [each.times_trained for each in buffer.sample(1, 0) or []] == [1]
    assert [(each.number, each.times_trained) for each in buffer.sample(1, 1) or []] == [(1, 1), (0, 2)]


def test_every_optimizer_step_has_its_part_of_the_new_and_of_the_old() -> None:
    """Six old groups and four new ones: one after the other, a first step of five would have all that is new."""
    buffer = OwnSuccesses(size=6)
    for number in range(10):
        buffer.add(group(number, [1, 0], number // 6))
    buffer.sample(6, 0)
    first, second = optimizer_steps(buffer.sample(4, 1) or [], 2)
    assert [each.number for each in first] == [6, 0, 1, 7, 2] and [each.number for each in second] == [8, 3, 4, 9, 5]


def test_the_old_are_forgotten_and_help_never_comes_again() -> None:
    buffer = OwnSuccesses(size=1, age=10)
    buffer.add(group(0, [1, 0], 0))
    buffer.sample(1, 0)
    buffer.add(group(1, [0, 0], 11))
    assert drawn(buffer, 1, 11) == [["1-0", "1-1"]], "eleven versions old"
    helped = group(2, [1, 0, 0.9], 12)
    helped.rollouts[0].origin = Origin.GUIDED
    buffer.add(helped)
    buffer.sample(1, 12)
    buffer.add(group(3, [0, 0], 22))
    assert drawn(buffer, 1, 22)[1:] == [["2-2"]], "ten versions old"


def test_what_does_not_suffice_is_waited_for_and_a_restored_memory_draws_the_same() -> None:
    groups = {number: group(number, [1, 0], number) for number in range(5)}
    buffer, other = OwnSuccesses(size=3), OwnSuccesses(size=3)
    for number in range(3):
        buffer.add(groups[number])
    buffer.sample(2, 1)
    other.restore(buffer.state(), lambda number: replace(groups[number]))
    assert len(buffer) == len(other) == 1 and buffer.sample(2, 2) is None
    for each in (buffer, other):
        each.add(replace(groups[3]))
        each.sample(1, 2)
        assert drawn(each, 1, 3) == [["3-0", "3-1"], ["0-0"], ["1-0"], ["2-0"]]
    assert buffer.state() == other.state()
    for wrong in ({"size": 0}, {"age": 0}):
        with pytest.raises(ConfigurationError, match="size >= 1 and age >= 1"):
            OwnSuccesses(**wrong)
