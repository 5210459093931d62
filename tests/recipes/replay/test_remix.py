"""ReMix's draw: how many old groups, of which policies, until when."""

from __future__ import annotations

from collections import Counter

import pytest

from strop.errors import ConfigurationError
from strop.recipes.replay.remix import MixedReplay
from strop.types import Group
from tests.building import TASK


def stepped(buffer: MixedReplay, step: int, count: int = 4) -> list[Group]:
    for number in range(step * count, (step + 1) * count):
        buffer.add(Group(number, TASK, [], version=step))
    drawn = buffer.sample(count, step)
    assert drawn is not None and [group.number for group in drawn[:count]] == list(
        range(step * count, step * count + count)
    )
    assert len({group.number for group in drawn}) == len(drawn) and len(buffer) == 0
    assert all(group.times_trained == 1 for group in drawn[:count])
    assert all(group.times_trained > 1 for group in drawn[count:])
    return drawn[count:]


def test_old_groups_have_their_share_and_are_of_the_last_policies() -> None:
    buffer, ages, steps = MixedReplay(old=0.4, window=2), Counter[int](), 600
    assert stepped(buffer, 0) == []
    for step in range(1, steps):
        ages.update(step - group.version for group in stepped(buffer, step))
    assert set(ages) == {1, 2} and abs(ages[1] - ages[2]) < 150
    assert ages.total() / (ages.total() + 4 * steps) == pytest.approx(0.4, abs=0.03)


def test_the_policy_is_chosen_first_and_then_its_group() -> None:
    """One group of version 0, three of version 1: the one is drawn as often as the three together."""
    seen = Counter[int]()
    for seed in range(1500):
        buffer = MixedReplay(old=0.3, window=2, seed=seed)
        for number, version in ((0, 0), (1, 1), (2, 1), (3, 1), (4, 2)):
            buffer.add(Group(number, TASK, [], version=version))
        buffer.sample(4, 1)
        if len(drawn := buffer.sample(1, 2) or []) == 2:
            seen[drawn[1].number] += 1
    assert seen[0] / seen.total() == pytest.approx(1 / 2, abs=0.06)
    assert all(seen[number] / seen.total() == pytest.approx(1 / 6, abs=0.05) for number in (1, 2, 3))


def test_from_a_version_on_it_is_on_policy() -> None:
    buffer = MixedReplay(old=0.9, window=3, until=3)
    found = [len(stepped(buffer, step)) for step in range(6)]
    assert found[0] == 0 and found[1] > 0 and found[2] > 0 and found[3:] == [0, 0, 0]


def test_a_group_that_came_late_counts_by_the_policy_that_made_it() -> None:
    buffer = MixedReplay(old=0.9, window=1)
    buffer.add(Group(0, TASK, [], version=0))
    buffer.sample(1, 2)  # with a lag of 2
    buffer.add(Group(1, TASK, [], version=3))
    drawn = buffer.sample(1, 3)
    assert drawn is not None and [group.number for group in drawn] == [1], "three versions old"


def test_what_does_not_suffice_is_waited_for_and_a_restored_buffer_draws_the_same() -> None:
    buffer, other = MixedReplay(old=0.6), MixedReplay(old=0.6)
    for step in range(3):
        stepped(buffer, step)
    buffer.add(Group(12, TASK, [], version=3))
    other.restore(buffer.state(), lambda number: Group(number, TASK, [], version=number // 4))
    assert len(buffer) == len(other) == 1 and buffer.sample(2, 3) is None
    ours, theirs = buffer.sample(1, 3), other.sample(1, 3)
    assert ours is not None and theirs is not None and len(ours) > 1
    assert [g.number for g in ours] == [g.number for g in theirs] and buffer.state() == other.state()
    with pytest.raises(ValueError, match="already"):
        buffer.add(Group(12, TASK, []))
    for wrong in ({"old": 1.0}, {"window": 0}, {"until": -1}):
        with pytest.raises(ConfigurationError, match="MixedReplay needs"):
            MixedReplay(**wrong)  # type: ignore[arg-type]
