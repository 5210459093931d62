from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.replay.mostly_recent import MostlyRecent
from tests.building import make_group


def filled(buffer: MostlyRecent, numbers: range) -> MostlyRecent:
    for number in numbers:
        buffer.add(make_group([1.0, 0.0], number=number))
    return buffer


def numbers(buffer: MostlyRecent, count: int, step: int) -> list[int] | None:
    drawn = buffer.sample(count, step)
    return None if drawn is None else [group.number for group in drawn]


def test_only_recent_is_first_in_first_out() -> None:
    buffer = filled(MostlyRecent(recent=1.0), range(5))
    assert numbers(buffer, 2, 0) == [0, 1] and len(buffer) == 3
    assert numbers(buffer, 2, 1) == [2, 3]
    assert numbers(buffer, 2, 2) is None
    with pytest.raises(ValueError, match="group 0 is already"):
        filled(buffer, range(1))


def test_the_share_of_old_groups_is_the_one_asked_for() -> None:
    buffer, old, steps = MostlyRecent(recent=0.75), 0, 400
    for step in range(steps):
        filled(buffer, range(step * 8, step * 8 + 8))
        drawn = buffer.sample(8, step)
        assert drawn is not None and len({group.number for group in drawn}) == len(drawn)
        assert [group.number for group in drawn[:8]] == list(range(step * 8, step * 8 + 8))  # no new one waits
        old += len(drawn) - 8
    assert old / (old + 8 * steps) == pytest.approx(0.25, abs=0.02)


def test_none_again_before_all_others_were() -> None:
    buffer = filled(MostlyRecent(recent=0.4), range(40))
    assert numbers(buffer, 6, 0) == [0, 1, 2, 3, 4, 5]  # nothing is old yet
    for step in range(1, 35):
        buffer.sample(1, step)
        begun = [group.times_trained for number, group in sorted(buffer._held.old.items()) if number < 6]
        assert max(begun) - min(begun) <= 1
    assert min(begun) > 1


def test_the_oldest_beyond_the_capacity_are_forgotten() -> None:
    buffer = filled(MostlyRecent(recent=1.0, capacity=3), range(8))
    buffer.sample(8, 0)
    assert sorted(buffer._held.old) == [5, 6, 7]


def test_it_resumes_to_the_same_draws() -> None:
    buffer = filled(MostlyRecent(recent=0.5), range(12))
    buffer.sample(6, 0)
    buffer.sample(4, 1)
    other = MostlyRecent(recent=0.5)
    other.restore(buffer.state(), lambda number: make_group([1.0, 0.0], number=number))
    assert sorted(other._held.old) == sorted(buffer._held.old) and sorted(other._held.new) == sorted(buffer._held.new)
    for step in range(2, 5):
        assert numbers(buffer, 2, step) == numbers(other, 2, step)
    assert buffer.state() == other.state()


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 < recent <= 1"):
        MostlyRecent(recent=0.0)


def test_answers_of_old_groups_are_drawn_by_a_softmax_over_rewards() -> None:
    """Two of three, one after the other: the first i has w_i / sum w, then the second its share of what is left."""
    rewards, sharpness, seen = [1.0, 0.0, 0.5], 2.0, Counter[tuple[int, ...]]()
    for seed in range(3000):
        buffer = MostlyRecent(recent=0.3, seed=seed, answers=2, sharpness=sharpness)
        for number in range(2):
            buffer.add(make_group(rewards, number=number))
            drawn = buffer.sample(1, number)
        assert drawn is not None and len(drawn[0].rollouts) == 3  # the new one is whole
        seen.update(tuple(rewards.index(t.reward) for t in group.rollouts) for group in drawn[1:])
    weights = np.exp(sharpness * np.array(rewards))
    probabilities = weights / weights.sum()
    for (one, other), count in seen.items():
        first, second = probabilities[one], probabilities[other]
        expected = first * second / (1 - first) + second * first / (1 - second)
        assert count / seen.total() == pytest.approx(expected, abs=0.04)
    assert set(seen) == {(0, 1), (0, 2), (1, 2)} and seen.total() > 1000


def test_what_cannot_be_balanced_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"answers >= 2 or 0 for all.*got 1 and 0\.0"):
        MostlyRecent(answers=1)
