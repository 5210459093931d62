"""What samplers choose from and how: pools, hands, shelves, and the step from scores to a choice."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import drawn, highest, softmax
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from strop.types import Task


class Three(Arithmetic):
    def num_tasks(self, heldout: bool = False) -> int | None:
        return 3


class Nothing(Arithmetic):
    def num_tasks(self, heldout: bool = False) -> int | None:
        return 0


def test_a_pool_holds_finite_envs_whole_and_a_part_of_endless_ones() -> None:
    pool = Pool((Arithmetic(1), Three(2)), 5)
    assert len(pool) == 5 + 3 and [pool.env(place) for place in range(8)] == [0] * 5 + [1] * 3
    assert pool.task(2) == Arithmetic(1).task(2) and pool.place(pool.task(6)) == 6
    assert pool.place(Arithmetic(1).task(4)) == 4 and pool.place(Arithmetic(3).task(0)) is None
    assert pool.tasks([7, 0]) == [pool.task(7), pool.task(0)]


class Again(Arithmetic):
    """Repeats itself after three tasks."""

    def task(self, index: int, heldout: bool = False) -> Task:
        return super().task(index % 3, heldout)


def test_where_a_repeated_task_stands_does_not_depend_on_who_was_asked_for_first() -> None:
    """A new pool after a stop is asked in another order: evidence must not move to another place by that."""
    one, two = Pool((Again(4),), 8), Pool((Again(4),), 8)
    late = one.task(7)
    assert one.place(late) == two.place(late) == 1


def test_pools_of_nothing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="got 0 and 5"):
        Pool((), 5)
    with pytest.raises(ConfigurationError, match="got 1 and 0"):
        Pool((Arithmetic(1),), 0)
    with pytest.raises(ConfigurationError, match="arithmetic:4 has no tasks"):
        Pool((Nothing(4),), 5)


def test_a_hand_is_played_to_its_end_or_until_weights_move() -> None:
    hand, asked = PendingChoices(), list[int]()

    def choose(number: int) -> list[int]:
        asked.append(number)
        return [10 * number, 10 * number + 1]

    assert [hand.next(0, choose) for _ in range(3)] == [0, 1, 10] and asked == [0, 1]
    again = PendingChoices()
    again.restore(hand.state())
    assert again == hand and again.next(0, choose) == 11
    assert hand.next(1, choose) == 20 and asked == [0, 1, 2], "what is left of an old choice is dropped"


def test_shelves_give_each_envs_tasks_in_order_and_know_whose_a_task_is() -> None:
    shelves = BanditArms((Arithmetic(1), Arithmetic(3)))
    assert [shelves.take(arm) for arm in (1, 0, 1)] == [
        Arithmetic(3).task(0),
        Arithmetic(1).task(0),
        Arithmetic(3).task(1),
    ]
    again = BanditArms(shelves.envs)
    again.restore(shelves.state())
    assert again.take(1) == Arithmetic(3).task(2)
    assert shelves.arm(Arithmetic(3).task(9)) == 1 and shelves.arm(Countdown(3).task(0)) is None
    with pytest.raises(ConfigurationError, match="differ in name or level"):
        BanditArms((Arithmetic(1), Arithmetic(1)))


def test_equals_are_taken_by_probability_and_the_rest_by_score() -> None:
    first = Counter(highest([0.5, 0.9, 0.5, 0.5], 2, (7, draw))[1] for draw in range(3000))
    assert set(first) == {0, 2, 3} and all(abs(count - 1000) < 120 for count in first.values())
    assert highest([0.5, 0.9, 0.1], 3, (0,)) == [1, 0, 2] and highest([1.0, 1.0], 2, (3,)) == highest(
        [1.0, 1.0], 2, (3,)
    )


def test_draws_without_replacement_have_the_probabilities_of_drawing_one_by_one() -> None:
    weights = [1.0, 2.0, 5.0]
    seen = Counter(tuple(drawn(weights, 2, (1, draw))) for draw in range(20000))
    for first, second in permutations(range(3), 2):
        wanted = weights[first] / 8 * weights[second] / (8 - weights[first])
        assert abs(seen[first, second] / 20000 - wanted) < 4 * np.sqrt(wanted / 20000)
    assert drawn([0.0, 0.0, 1.0], 1, (5,)) == [2] and sorted(drawn([0.0, 0.0, 1.0], 3, (5,))) == [0, 1, 2]


def test_softmax_by_hand() -> None:
    assert softmax([0.0, np.log(3)]) == pytest.approx([0.25, 0.75])
    assert softmax([1000.0, 1000.0 + np.log(3) / 2], 0.5) == pytest.approx([0.25, 0.75])
