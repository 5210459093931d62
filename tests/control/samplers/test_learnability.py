"""SFL: the score against integration, the mix of draws, and memory."""

from __future__ import annotations

import json
from math import sqrt

import numpy as np
import pytest

from strop.control.estimators.pass_rate_counts import Counts, TaskCounts
from strop.control.samplers.learnability import Learnability, learnability
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from tests.control.samplers.groups import seen

ENV = Arithmetic(4)
PLACES = {ENV.task(index).id: index for index in range(16)}


def estimator() -> TaskCounts:
    """Of eight tasks 0 and 1 are even, 2 to 5 were never or always solved, of 6 and 7 nothing is known."""
    made = TaskCounts(1.0, 1.0)
    for index, right in enumerate((4, 4, 0, 0, 8, 8)):
        made.observe(seen(ENV.task(index), [1.0] * right + [0.0] * (8 - right), index))
    return made


@pytest.mark.parametrize(("right", "count"), [(0, 0), (4, 8), (0, 8), (3, 4)])
def test_the_score_is_the_expected_variance_of_an_outcome(right: int, count: int) -> None:
    """The integral of p (1 - p) over the Beta distribution, by a fine sum."""
    grid = (np.arange(20000) + 0.5) / 20000
    density = grid**right * (1 - grid) ** (count - right)
    wanted = float((grid * (1 - grid) * density).sum() / density.sum())
    made = TaskCounts()
    if count:
        made.observe(seen(ENV.task(0), [1.0] * right + [0.0] * (count - right)))
    assert learnability(*made.predict([ENV.task(0)], 0)) == pytest.approx([wanted], rel=1e-4)


def test_the_best_come_first_where_no_others_are_asked_for() -> None:
    for seed in range(10):
        sampler = Learnability((ENV,), 8, kept=4, others=0.0, seed=seed)
        order = [PLACES[sampler.next(0, estimator()).id] for _ in range(8)]
        assert set(order[:4]) == {0, 1, 6, 7} and sorted(order) == list(range(8))
    orders = {Learnability((ENV,), 8, 4, 0.0, seed).next(0, estimator()).id for seed in range(40)}
    assert len(orders) == 4, "the kept ones are alike"


def test_the_mix_of_draws() -> None:
    """The first is one of the 2 kept with probability 1/2 + 1/2 * 2/8."""
    firsts = [PLACES[Learnability((ENV,), 8, 2, 0.5, seed).next(0, estimator()).id] for seed in range(2000)]
    share, probability = np.mean([place < 2 for place in firsts]), 0.5 + 0.5 * 2 / 8
    assert abs(share - probability) < 4 * sqrt(probability * (1 - probability) / 2000)
    plain = [PLACES[Learnability((ENV,), 8, 2, 1.0, seed).next(0, estimator()).id] for seed in range(800)]
    assert all(abs(plain.count(place) / 800 - 1 / 8) < 4 * sqrt(7 / 64 / 800) for place in range(8))


def test_what_it_says() -> None:
    sampler = Learnability((ENV,), 2)
    sampler.next(0, TaskCounts())
    assert sampler.learn([]) == {"score_gain": 0.0}
    group = seen(ENV.task(0), [1.0])
    group.predicted = (0.5, 0.05)
    assert sampler.learn([group]) == {"score_gain": pytest.approx(0.2 - (1 / 4 - 1 / 12))}


def test_it_goes_on_where_it_was_and_refuses_nonsense() -> None:
    sampler, again = Learnability((ENV,), 8), Learnability((ENV,), 8)
    for _ in range(3):
        sampler.next(0, estimator())
    again.restore(json.loads(json.dumps(sampler.state())))
    steps = (0, 0, 1, 1, 2)
    assert [again.next(step, estimator()) for step in steps] == [sampler.next(step, estimator()) for step in steps]
    for wrong in ((0, 0.5), (4, -0.1), (4, 1.1)):
        with pytest.raises(ConfigurationError, match=f"got {wrong[0]} and {wrong[1]}"):
            Learnability((ENV,), 8, *wrong)
    assert Learnability((ENV,), 2).next(0, Counts()).source == "arithmetic"
