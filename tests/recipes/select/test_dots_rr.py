"""Probability by distance from a target: its law by enumeration, its periods, its memory."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.dots_rr import NearTarget
from tests.control.samplers.test_nearest_to_target import Knows, rate

ENV = Arithmetic(2)


def test_the_law_of_a_choice_by_enumeration() -> None:
    """Ordered pairs of 4 tasks: w_i / W * w_j / (W - w_i), against 4,000 seeds."""
    tasks = [ENV.task(index) for index in range(4)]
    weights = {task.id: math.exp(-abs(rate(task) - 0.5) / 0.2) for task in tasks}
    total, found, seeds = sum(weights.values()), Counter[tuple[str, str]](), 4000
    for seed in range(seeds):
        sampler = NearTarget((ENV,), pool=4, count=2, uniform=0, temperature=0.2, every=1, seed=seed)
        found[sampler.next(0, Knows()).id, sampler.next(0, Knows()).id] += 1
    for (one, two), count in found.items():
        probability = weights[one] / total * weights[two] / (total - weights[one])
        assert abs(count - seeds * probability) < 4.5 * math.sqrt(seeds * probability * (1 - probability)), (one, two)
    assert len(found) == 12


def test_at_the_papers_temperature_the_nearest_join_the_uniform_ones() -> None:
    sampler = NearTarget((ENV,), pool=32, count=8, uniform=2, every=1)
    chosen = [sampler.next(0, Knows()) for _ in range(8)]
    assert len({task.id for task in chosen}) == 8
    uniform = {task.id for task in chosen[:2]}
    left = [task for task in (ENV.task(index) for index in range(32)) if task.id not in uniform]
    nearest = sorted(left, key=lambda task: abs(rate(task) - 0.5))
    assert {task.id for task in chosen[2:]} == {task.id for task in nearest[:6]}
    metrics = sampler.learn([])
    mean = sum(abs(rate(task) - 0.5) for task in nearest[:6]) / 6
    assert metrics["chosen_distance"] == pytest.approx(mean, abs=1e-6) and metrics["nearer_by"] > 0.1


def test_uniform_ones_are_uniform() -> None:
    found = Counter(
        NearTarget((ENV,), pool=5, count=2, uniform=1, every=1, seed=seed).next(0, Knows()).id for seed in range(2000)
    )
    assert len(found) == 5 and all(abs(count - 400) < 80 for count in found.values())


def test_a_choice_is_for_so_many_versions() -> None:
    sampler = NearTarget((ENV,), pool=32, count=4, uniform=0, every=2)
    first = {sampler.next(step, Knows()).id for step in (0, 0, 1, 1)}
    assert len(first) == 4 and {sampler.next(2, Knows()).id for _ in range(4)} == first, (
        "the same pass-rate estimator, chosen anew"
    )
    assert sampler._pending.choices == 2
    sampler.next(4, Knows())
    assert sampler._pending.choices == 3


def test_a_restored_sampler_makes_the_same_choices() -> None:
    first = NearTarget((ENV,), pool=16, count=5, uniform=2, every=1, seed=3)
    second = NearTarget((ENV,), pool=16, count=5, uniform=2, every=1, seed=3)
    for _ in range(3):
        first.next(0, Counts())
    second.restore(json.loads(json.dumps(first.state())))
    for step in (0, 0, 0, 1, 1, 2):
        assert second.next(step, Counts()) == first.next(step, Counts())
    assert second.learn([]) == first.learn([])


@pytest.mark.parametrize(
    "wrong",
    [{"uniform": 8}, {"uniform": -1}, {"count": 33}, {"target": 2.0}, {"temperature": 0.0}, {"every": 0}],
)
def test_what_cannot_be_chosen_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="NearTarget needs"):
        NearTarget((ENV,), **({"pool": 32, "count": 8} | wrong))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="needs environments"):
        NearTarget(())
