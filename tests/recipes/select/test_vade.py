"""VADE's choice: the score by hand, samples against Beta distributions, and choices after a restart."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from strop.control.estimators.pass_rate_counts import Counts, TaskCounts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.vade import Thompson, beta
from tests.control.samplers.groups import seen

ENV = Arithmetic(4)


def known(*rewards: list[float]) -> TaskCounts:
    """A pass-rate estimator that saw the first tasks of the environment, a hundred times each, so that nothing is in
    warning.
    """
    estimator = TaskCounts(1.0, 1.0)
    for index, each in enumerate(rewards):
        for _ in range(100):
            estimator.observe(seen(ENV.task(index), each, index))
    return estimator


def test_mean_and_variance_become_the_distribution_they_are_of() -> None:
    """Beta(3, 5): mean 3/8, variance 15 / (64 * 9)."""
    first, second = beta(np.array([3 / 8, 0.5]), np.array([15 / 576, 1 / 12]))
    assert first == pytest.approx([3, 1]) and second == pytest.approx([5, 1])
    estimator = TaskCounts()
    estimator.observe(seen(ENV.task(0), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    first, second = beta(*estimator.predict([ENV.task(0)], 0))
    assert first == pytest.approx([3], rel=1e-4) and second == pytest.approx([5], rel=1e-4)
    sure, never = beta(np.array([1.0, 0.0]), np.array([0.0, 0.0]))
    assert np.isfinite(sure).all() and np.isfinite(never).all() and (sure > 0).all() and (never > 0).all()
    wild, other = beta(np.array([0.5]), np.array([0.9]))
    assert wild > 0 and other > 0


@pytest.mark.parametrize(
    ("power", "order"),
    [
        (2.0, [1, 2, 0]),  # 9/64 at a quarter, 1/8 at a half, 3/64 at three quarters
        (1.0, [2, 1, 0]),  # 3/16, 1/4, 3/16: ties are random
        (0.0, [0, 2, 1]),  # the most solved first
    ],
)
def test_what_is_known_well_is_ranked_by_its_score(power: float, order: list[int]) -> None:
    estimator = known([1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0])
    firsts = Counter[tuple[int, ...]]()
    for seed in range(20):
        sampler = Thompson((ENV,), 3, power, seed)
        tasks = [sampler.next(0, estimator) for _ in range(3)]
        firsts[tuple(ENV_IDS[task.id] for task in tasks)] += 1
    best = firsts.most_common(1)[0][0]
    assert best[0] == order[0] and all(ranked[0] == order[0] for ranked in firsts)
    if power == 2.0:
        assert firsts.most_common(1)[0] == ((1, 2, 0), firsts[1, 2, 0]) and firsts[1, 2, 0] > 10


ENV_IDS = {ENV.task(index).id: index for index in range(16)}


def test_random_ranks_follow_the_distributions() -> None:
    """Two tasks, nothing known of one and much of the other: how often each comes first, against plain samples."""
    estimator = known([1.0] * 9 + [0.0])
    firsts = Counter(ENV_IDS[Thompson((ENV,), 2, 2.0, seed).next(0, estimator).id] for seed in range(2000))
    random = np.random.default_rng(5)
    narrow, wide = random.beta(901, 101, 20000), random.beta(1, 1, 20000)
    share = float((narrow * (1 - narrow) ** 2 > wide * (1 - wide) ** 2).mean())
    assert abs(firsts[0] / 2000 - share) < 4 * (share * (1 - share) / 2000) ** 0.5 and 0.05 < share < 0.5


def test_a_pool_is_tried_to_its_end_before_any_task_comes_again_and_ranked_anew_with_new_weights() -> None:
    sampler, estimator = Thompson((ENV,), 8), TaskCounts()
    first = [ENV_IDS[sampler.next(0, estimator).id] for _ in range(8)]
    assert sorted(first) == list(range(8))
    assert sorted(ENV_IDS[sampler.next(0, estimator).id] for _ in range(8)) == list(range(8))
    assert [ENV_IDS[sampler.next(1, estimator).id] for _ in range(8)] != first


def test_metrics_compare_the_choice_with_the_pool() -> None:
    sampler, estimator = Thompson((ENV,), 2), known([1.0, 0.0])
    sampler.next(0, estimator)
    group = seen(ENV.task(0), [1.0, 0.0])
    assert sampler.learn([group]) == {"score_gain": 0.0}, "nothing was predicted of it"
    group.predicted = (1 / 3, 0.01)
    # the pool: .125 of the one known to be even, .125 of the one nothing is known of
    assert sampler.learn([group]) == {"score_gain": pytest.approx(4 / 27 - 1 / 8, abs=1e-6)}


def test_state_is_restored() -> None:
    sampler, again, estimator = Thompson((ENV,), 8), Thompson((ENV,), 8), TaskCounts()
    for _ in range(3):
        sampler.next(0, estimator)
    again.restore(json.loads(json.dumps(sampler.state())))
    group = seen(ENV.task(0), [1.0, 0.0])
    group.predicted = (1 / 3, 0.01)
    for each in (sampler, again):  # a batch of the version that was interrupted
        assert each.learn([group]) == {"score_gain": pytest.approx(4 / 27 - 1 / 8, abs=1e-6)}
    steps = (0, 0, 1, 1, 2)
    assert [again.next(step, estimator) for step in steps] == [sampler.next(step, estimator) for step in steps]


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="got -1"):
        Thompson((ENV,), power=-1)
    with pytest.raises(ConfigurationError, match="got 0 and 256"):
        Thompson(())
    assert Thompson((ENV,), 2).next(0, Counts()).source == "arithmetic", "any pass-rate estimator will do"
