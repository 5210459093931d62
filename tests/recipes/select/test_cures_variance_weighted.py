"""CurES's law by hand, the effect of its temperature, and choices after a restart."""

from __future__ import annotations

import json
from collections import Counter
from math import exp, sqrt

import pytest

from strop.control.estimators.pass_rate_counts import Counts, TaskCounts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.cures import VarianceWeighted
from tests.control.samplers.groups import seen

ENV = Arithmetic(4)


def estimator() -> TaskCounts:
    """Of four tasks: nothing known, 0 of 8, 8 of 8, 3 of 8."""
    made = TaskCounts(1.0, 1.0)
    for index, right in ((1, 0), (2, 8), (3, 3)):
        made.observe(seen(ENV.task(index), [1.0] * right + [0.0] * (8 - right), index))
    return made


def test_probabilities_by_hand() -> None:
    """p = 1/2, 1/10, 9/10, 4/10: roots .5, .3, .3, .4899."""
    for temperature in (0.1, 1.0):
        powers = [exp(sqrt(p * (1 - p)) / temperature) for p in (0.5, 0.1, 0.9, 0.4)]
        wanted = [power / sum(powers) for power in powers]
        sampler = VarianceWeighted((ENV,), 4, temperature)
        assert sampler.probabilities(0, estimator()) == pytest.approx(wanted, rel=1e-5)
    sampler.next(0, estimator())
    assert sampler.learn([]) == {"preference": pytest.approx(sum(max(p - 0.25, 0) for p in wanted), rel=1e-4)}


def test_the_temperature_has_an_effect() -> None:
    """At .1 the even task comes first 7.4 times as often as the hard one; the release's law is even within half a %."""
    firsts = Counter(VarianceWeighted((ENV,), 4, 0.1, seed).next(0, estimator()).id for seed in range(3000))
    counts = [firsts[ENV.task(index).id] for index in range(4)]
    probabilities = VarianceWeighted((ENV,), 4, 0.1).probabilities(0, estimator())
    for count, probability in zip(counts, probabilities, strict=True):
        assert abs(count / 3000 - probability) < 4 * sqrt(probability * (1 - probability) / 3000)
    assert probabilities[0] / probabilities[1] == pytest.approx(exp(2), rel=1e-4)


def test_no_task_comes_twice_under_the_same_weights_before_all_came_once() -> None:
    sampler = VarianceWeighted((ENV,), 4)
    assert len({sampler.next(0, estimator()).id for _ in range(4)}) == 4
    orders = {tuple(sampler.next(step, estimator()).id for _ in range(4)) for step in range(1, 30)}
    assert len(orders) > 3, "chance has a part in it, each time another"


def test_state_is_restored_and_nonsense_refused() -> None:
    sampler, again = VarianceWeighted((ENV,), 4), VarianceWeighted((ENV,), 4)
    sampler.next(0, estimator())
    again.restore(json.loads(json.dumps(sampler.state())))
    assert again.learn([]) == sampler.learn([]) and sampler.learn([])["preference"] > 0
    steps = (0, 1, 1, 2)
    assert [again.next(step, estimator()) for step in steps] == [sampler.next(step, estimator()) for step in steps]
    with pytest.raises(ConfigurationError, match="got 0"):
        VarianceWeighted((ENV,), temperature=0)
    with pytest.raises(ConfigurationError, match="got 0 and 256"):
        VarianceWeighted(())
    assert VarianceWeighted((ENV,), 2).probabilities(0, Counts()) == pytest.approx([0.5, 0.5])
