"""ALP-GMM: mixtures against known ones, changes by hand, where draws go, and memory."""

from __future__ import annotations

import json
from collections import Counter
from math import exp, log, pi, sqrt

import numpy as np
import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.alp_gmm import LearningProgress, places_of
from strop.control.samplers.support.gaussian_mixture import Gaussians, fitted
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from tests.control.samplers.groups import seen

ENVS = (Arithmetic(1), Arithmetic(3), Arithmetic(5), Countdown(3))


def test_densities_and_criterion_by_hand() -> None:
    """Two of weight 1/4 and 3/4 in one dimension, N(0, 1) and N(2, 4), at the point 1."""
    made = Gaussians(np.array([0.25, 0.75]), np.array([[0.0], [2.0]]), np.array([[[1.0]], [[4.0]]]))
    wanted = [0.25 * exp(-0.5) / sqrt(2 * pi), 0.75 * exp(-1 / 8) / sqrt(8 * pi)]
    assert np.exp(made.log_densities(np.array([[1.0]])))[0] == pytest.approx(wanted)
    assert made.criterion(np.array([[1.0]])) == pytest.approx(2 * (1 + 2 + 2) - 2 * log(sum(wanted)))


def test_a_known_mixture_is_found_again() -> None:
    random = np.random.default_rng(0)
    wide = random.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], 300)
    narrow = random.multivariate_normal([5.0, -5.0], [[0.1, 0.0], [0.0, 0.1]], 100)
    fit = fitted(np.concatenate([wide, narrow]), range(2, 6), (0,))
    assert len(fit.weights) == 2, "as many as there are"
    order = np.argsort(-fit.weights)
    assert fit.weights[order] == pytest.approx([0.75, 0.25], abs=0.01)
    assert fit.means[order][1] == pytest.approx([5, -5], abs=0.1)
    assert fit.covariances[order][0] == pytest.approx(np.array([[1.0, 0.8], [0.8, 1.0]]), abs=0.15)
    line = fitted(np.zeros((5, 3)), range(2, 11), (0,))
    assert np.isfinite(line.criterion(np.zeros((5, 3)))), "points without spread have a density"


def test_places_are_names_and_levels() -> None:
    assert places_of(ENVS) == pytest.approx(np.array([[0, 0], [0, 0.5], [0, 1], [1, 0.5]]))
    assert places_of(ENVS[:1]).tolist() == [[0, 0]]


def changes(sampler: LearningProgress) -> list[tuple[int, float]]:
    return [(arm, round(change, 9)) for arm, change in sampler.state()["changes"]]


def test_changes_are_against_the_nearest_that_was_tried_before() -> None:
    sampler = LearningProgress(ENVS, window=10)
    for number, (arm, rewards) in enumerate(
        [
            (0, [1.0, 1.0, 1.0, 0.0]),  # the first: nothing to compare with
            (2, [0.0, 0.0, 0.0, 1.0]),  # against arm 0: .5
            (0, [1.0, 1.0]),  # against itself: .25
            (1, [1.0, 0.0]),  # between arm 0 (1.0) and arm 2 (.25), as far: the first of both, .5
            (3, [0.0, 0.0]),  # nearest is arm 1 (.5): .5
        ]
    ):
        sampler.observe(seen(ENVS[arm].task(0), rewards, number))
    assert changes(sampler) == [], "not before weights move"
    sampler.next(1, Counts())
    assert changes(sampler) == [(2, 0.5), (0, 0.25), (1, 0.5), (3, 0.5)]
    assert sampler.learn([]) == {"learning_progress": pytest.approx(0.4375), "gaussians": 0.0}


def test_order_of_arrival_changes_nothing_and_failures_are_no_evidence() -> None:
    groups = [seen(ENVS[number % 4].task(0), [1.0] * number + [0.0], number) for number in range(6)]
    there, back = LearningProgress(ENVS, 3), LearningProgress(ENVS, 3)
    for group in groups:
        there.observe(group)
    for group in reversed(groups):
        back.observe(group)
    for each in (there, back):
        each.observe(seen(ENVS[0].task(0), [1.0, 0.0], 9, failed=[0, 1]))
        each.observe(seen(Countdown(4).task(0), [1.0], 10))
    assert there.next(1, Counts()) == back.next(1, Counts()) and there.state() == back.state()
    assert len(changes(there)) == 3, "those of the window"


def moving(arm: int, steps: int = 12) -> LearningProgress:
    """One environment whose success goes up and down, while all others stay."""
    sampler = LearningProgress(ENVS, window=40, others=0.2)
    for step in range(steps):
        for index, env in enumerate(ENVS):
            moved = [1.0, 1.0] if step % 2 else [0.0, 0.0]
            sampler.observe(seen(env.task(0), moved if index == arm else [1.0, 0.0], 4 * step + index, step))
        sampler.next(step + 1, Counts())
    return sampler


@pytest.mark.parametrize("arm", [0, 2, 3])
def test_what_moves_is_drawn_most(arm: int) -> None:
    """4/5 go to the environment that moves and 1/5 anywhere; in a batch of 400."""
    sampler = moving(arm)
    assert sampler.learn([])["gaussians"] >= 2
    counts = Counter((task.source, task.level) for task in (sampler.next(12, Counts()) for _ in range(400)))
    assert counts[ENVS[arm].name, ENVS[arm].level] / 400 == pytest.approx(0.8 + 0.2 / 4, abs=0.08)
    assert len(counts) == 4


def test_without_progress_every_env_is_as_likely() -> None:
    sampler = LearningProgress(ENVS, window=8, others=0.0)
    for step in range(6):
        for index, env in enumerate(ENVS):
            sampler.observe(seen(env.task(0), [1.0, 0.0], 4 * step + index, step))
        sampler.next(step + 1, Counts())
    assert sampler.learn([])["learning_progress"] == 0 and sampler.learn([])["gaussians"] >= 2
    counts = Counter(task.level for task in (sampler.next(6, Counts()) for _ in range(400)))
    assert set(counts) == {1, 3, 5}, "nothing is preferred"
    early = LearningProgress(ENVS, others=0.0)
    first = Counter((task.source, task.level) for task in (early.next(0, Counts()) for _ in range(2000)))
    assert all(abs(count / 2000 - 1 / 4) < 4 * sqrt(3 / 16 / 2000) for count in first.values()) and len(first) == 4


def test_it_goes_on_where_it_was() -> None:
    sampler, again = moving(1), LearningProgress(ENVS, window=40)
    sampler.observe(seen(ENVS[0].task(0), [1.0], 99, 12))
    again.restore(json.loads(json.dumps(sampler.state())))
    steps = (12, 13, 13, 14)
    assert [again.next(step, Counts()) for step in steps] == [sampler.next(step, Counts()) for step in steps]
    assert again.state() == sampler.state()


def test_nonsense_is_refused() -> None:
    for wrong in ((1, 0.5), (4, -0.1), (4, 1.1)):
        with pytest.raises(ConfigurationError, match=f"got {wrong[0]} and {wrong[1]}"):
            LearningProgress(ENVS, *wrong)
