"""Candidates nearest to a target: by enumeration, by chance among equals, and over tasks that come back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.nearest_to_target import Nearest
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.roles import PassRateEstimator
from strop.types import FloatArray, Group, Task


@dataclass(frozen=True)
class Knows(PassRateEstimator):
    """A success rate of its own for every task, read off its id."""

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        return np.array([rate(task) for task in tasks], dtype=np.float32), np.zeros(len(tasks), dtype=np.float32)

    def observe(self, group: Group) -> None: ...


def rate(task: Task) -> float:
    return int(task.id[:6], 16) / 16**6


class Repeats(Arithmetic):
    """Three tasks, over and over."""

    def task(self, index: int, heldout: bool = False) -> Task:
        return super().task(index % 3, heldout)


@pytest.mark.parametrize("seed", range(5))
def test_with_the_truth_and_one_half_no_other_choice_teaches_more(seed: int) -> None:
    """sum of p(1 - p) over all 4-subsets of the 12 candidates."""
    envs = (Arithmetic(2, seed=seed), Arithmetic(3, seed=seed))
    sampler = Nearest(envs, count=4, candidates=3, seed=seed)
    chosen = [sampler.next(0, Knows()) for _ in range(4)]
    candidates = [envs[number % 2].task(number // 2) for number in range(12)]
    assert {task.id for task in chosen} <= {task.id for task in candidates}
    best = max(sum(rate(t) * (1 - rate(t)) for t in subset) for subset in combinations(candidates, 4))
    assert sum(rate(t) * (1 - rate(t)) for t in chosen) == pytest.approx(best, abs=1e-12)


def test_another_target_takes_the_tasks_nearest_to_it() -> None:
    env = Arithmetic(2)
    sampler = Nearest((env,), count=3, candidates=5, target=0.9)
    chosen = {sampler.next(0, Knows()).id for _ in range(3)}
    by_distance = sorted((env.task(index) for index in range(15)), key=lambda task: abs(rate(task) - 0.9))
    assert chosen == {task.id for task in by_distance[:3]}
    means = [abs(rate(task) - 0.9) for task in by_distance]
    metrics = sampler.learn([])
    assert metrics["chosen_distance"] == pytest.approx(np.mean(means[:3]), abs=1e-6)
    assert metrics["nearer_by"] == pytest.approx(np.mean(means) - np.mean(means[:3]), abs=1e-6)


def test_a_estimator_that_knows_nothing_leaves_it_to_probability() -> None:
    """All 6 pairs of 4 candidates come equally often: 200 of 1200 each, with a deviation of 13."""
    env, found = Arithmetic(2), Counter[frozenset[str]]()
    for seed in range(1200):
        sampler = Nearest((env,), count=2, candidates=2, seed=seed)
        found[frozenset(sampler.next(0, Counts()).id for _ in range(2))] += 1
        assert sampler.learn([]) == {"chosen_distance": 0.0, "nearer_by": 0.0}
    assert len(found) == 6 and all(abs(count - 200) < 52 for count in found.values()), found


def test_weights_that_moved_and_hands_that_are_empty_bring_new_candidates() -> None:
    env = Arithmetic(2)
    sampler = Nearest((env,), count=2, candidates=2)
    ids = [[env.task(index).id for index in range(first, first + 4)] for first in (0, 4, 8)]
    assert sampler.next(0, Knows()).id in ids[0]
    assert {sampler.next(1, Knows()).id for _ in range(2)} <= set(ids[1]), "chosen anew, for other weights"
    assert sampler.next(1, Knows()).id in ids[2], "both were tried"


def test_a_pool_comes_back_and_every_task_of_a_choice_is_another() -> None:
    envs = (Arithmetic(2), Arithmetic(3))
    sampler = Nearest(envs, count=2, candidates=2, pool=3)
    pool = {env.task(index).id for env in envs for index in range(3)}
    found = Counter(task.id for step in range(40) for task in _pending(sampler, step))
    assert found.keys() <= pool and max(found.values()) > 10
    nearest = sorted((env.task(index) for env in envs for index in range(3)), key=lambda t: abs(rate(t) - 0.5))
    assert found.most_common(1)[0][0] in {task.id for task in nearest[:2]}, "what is nearest comes most often"
    assert all(len({task.id for task in _pending(sampler, step)}) == 2 for step in range(40, 60))


def _pending(sampler: Nearest, step: int) -> list[Task]:
    return [sampler.next(step, Knows()) for _ in range(2)]


def test_a_env_that_repeats_itself_is_not_tried_twice_in_one_choice() -> None:
    sampler = Nearest((Repeats(2),), count=3, candidates=4)
    assert len({sampler.next(0, Knows()).id for _ in range(3)}) == 3


@pytest.mark.parametrize("pool", [0, 6])
def test_a_restored_sampler_makes_the_same_choices(pool: int) -> None:
    first = Nearest((Arithmetic(2), Arithmetic(3)), count=3, candidates=2, pool=pool, seed=5)
    for _ in range(4):  # in the middle of the second hand
        first.next(0, Knows())
    second = Nearest((Arithmetic(2), Arithmetic(3)), count=3, candidates=2, pool=pool, seed=5)
    second.restore(json.loads(json.dumps(first.state())))
    assert second.learn([]) == first.learn([])
    for step in (0, 0, 0, 0, 1, 1, 2):
        assert second.next(step, Knows()) == first.next(step, Knows())


@pytest.mark.parametrize(
    "wrong", [{"count": 0}, {"candidates": 0}, {"target": 1.5}, {"target": -0.1}, {"pool": -1}, {"envs": ()}]
)
def test_what_cannot_be_chosen_from_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="Nearest needs environments"):
        Nearest(**({"envs": (Arithmetic(2),)} | wrong))  # type: ignore[arg-type]
