"""DUMP's values by hand: the window, the bonus, and late groups."""

from __future__ import annotations

import json
from collections import Counter
from math import log, sqrt

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from strop.recipes.select.dump import UpperConfidence
from strop.types import Group
from tests.control.samplers.groups import seen

ENVS = (Arithmetic(4), Countdown(4))
SUM, COUNT = (env.task(0) for env in ENVS)


def observed(*groups: Group, window: int = 300) -> UpperConfidence:
    sampler = UpperConfidence(ENVS, window)
    for group in groups:
        sampler.observe(group)
    sampler.next(1, Counts())
    return sampler


@pytest.mark.parametrize(("second", "probability"), [(300, 0.982), (30, 0.461)])
def test_the_cards_numbers(second: int, probability: float) -> None:
    """Means of .5 and .1: the arm with as many rollouts is hardly sampled, the one with few is sampled more."""
    sampler = UpperConfidence(ENVS)
    latest = [[[0, i, 0, 0.5] for i in range(300)], [[0, i, 0, 0.1] for i in range(second)]]
    sampler.restore(sampler.state() | {"latest": latest, "counts": [300, second]})
    assert sampler.probabilities() == pytest.approx([probability, 1 - probability], abs=5e-4)


def test_values_by_hand() -> None:
    """Four rollouts of |A| 1 and two of 0 at one environment, three of 2 sqrt(2/9) on average at the other."""
    sampler = observed(
        seen(SUM, [1.0, 0.0, 0.0, 1.0]), seen(SUM, [1.0, 1.0], 1), seen(COUNT, [1.0, 0.0, 0.0, 0.5], 2, failed=[3])
    )
    bonus = [sqrt(2 * log(10) / (count + 1)) for count in (6, 3)]
    assert sampler.values() == pytest.approx([4 / 6 + bonus[0], 2 * sqrt(2 / 9) + bonus[1]])


def test_at_first_all_arms_are_equal_and_groups_count_from_the_next_version() -> None:
    sampler = UpperConfidence(ENVS)
    assert sampler.values() == [0.0, 0.0]
    sampler.observe(seen(SUM, [1.0, 0.0]))
    sampler.next(0, Counts())
    assert sampler.values() == [0.0, 0.0]
    sampler.next(1, Counts())
    assert sampler.values() == pytest.approx([1 + sqrt(2 * log(3) / 3), sqrt(2 * log(3))])
    metrics = sampler.learn([])
    assert metrics["preference"] == pytest.approx(sampler.probabilities().max() - 0.5)
    assert metrics["probability/countdown:4"] == sampler.probabilities()[1]


def test_the_window_counts_rollouts_and_the_bonus_all_of_them() -> None:
    sampler = observed(seen(SUM, [1.0, 0.0]), seen(SUM, [1.0, 1.0, 1.0], 1), window=4)
    # of five rollouts the last four: one of |A| 1 and three of 0
    assert sampler.values()[0] == pytest.approx(1 / 4 + sqrt(2 * log(6) / 6))
    sampler.observe(seen(SUM, [1.0, 0.0, 1.0, 0.0], 2, version=1))
    sampler.next(2, Counts())
    assert sampler.values()[0] == pytest.approx(1 + sqrt(2 * log(10) / 10))


def test_late_groups_fall_where_they_belong() -> None:
    """A group of version 0 that comes in at version 3 is older than what the window holds of version 2."""
    early, late = seen(SUM, [1.0, 0.0], 5, version=2), seen(SUM, [1.0, 1.0], 1)
    sampler = observed(early, window=2)
    sampler.observe(late)
    sampler.next(3, Counts())
    assert sampler.values()[0] == pytest.approx(1 + sqrt(2 * log(5) / 5)), "counted, and no longer among the latest"
    there, back = observed(early, late, window=3), observed(late, early, window=3)
    assert there.state() == back.state()


def test_environments_are_sampled_with_their_probabilities() -> None:
    sampler = observed(seen(SUM, [1.0, 0.0, 1.0, 0.0]), seen(COUNT, [1.0, 1.0, 1.0, 0.0], 1))
    tasks = [sampler.next(1, Counts()) for _ in range(4000)]
    probability, counts = sampler.probabilities()[0], Counter(task.source for task in tasks)
    assert 0.05 < probability < 0.95
    assert abs(counts["arithmetic"] / 4000 - probability) < 4 * sqrt(probability * (1 - probability) / 4000)


def test_state_is_restored() -> None:
    sampler, again = observed(seen(SUM, [1.0, 0.0]), window=3), UpperConfidence(ENVS, 3)
    sampler.observe(seen(COUNT, [1.0, 0.0, 0.0], 1, version=1))
    again.restore(json.loads(json.dumps(sampler.state())))
    assert [again.next(step, Counts()) for step in (1, 2, 2, 2)] == [
        sampler.next(step, Counts()) for step in (1, 2, 2, 2)
    ]
    assert again.state() == sampler.state()


def test_nonsense_is_refused_and_a_foreign_task_is_no_evidence() -> None:
    with pytest.raises(ConfigurationError, match=r"got 0 and 0\.1"):
        UpperConfidence(ENVS, 0)
    with pytest.raises(ConfigurationError, match="got 300 and 0"):
        UpperConfidence(ENVS, temperature=0)
    sampler = UpperConfidence(ENVS[:1])
    sampler.observe(seen(COUNT, [1.0, 0.0]))
    sampler.next(1, Counts())
    assert sampler.values() == [0.0]
