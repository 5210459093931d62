"""Counts per task by hand: two admissions of forgetting, late groups, and memory."""

from __future__ import annotations

import json

import pytest

from strop.control.estimators import pass_rate_counts
from strop.control.estimators.pass_rate_counts import TaskCounts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from tests.control.samplers.groups import seen

ONE, OTHER = Arithmetic(1).task(0), Arithmetic(1).task(1)


def predicted(estimator: TaskCounts, step: int) -> tuple[float, float]:
    means, variances = estimator.predict([OTHER, ONE], step)
    assert means[0] == 0.5 and variances[0] == pytest.approx(1 / 12), "of another task nothing is known"
    return float(means[1]), float(variances[1])


def test_it_forgets_by_version_and_by_visit() -> None:
    estimator = TaskCounts(0.9, 0.5)
    assert predicted(estimator, 0) == (0.5, pytest.approx(1 / 12))
    estimator.observe(seen(ONE, [1.0, 1.0, 0.0, 1.0], version=2))  # 3 right, 1 wrong
    assert predicted(estimator, 2) == (pytest.approx(4 / 6), pytest.approx(4 * 2 / (36 * 7)))
    right, wrong = 3 * 0.9**2, 1 * 0.9**2  # two versions later
    mean = (right + 1) / (right + wrong + 2)
    assert predicted(estimator, 4) == (pytest.approx(mean), pytest.approx(mean * (1 - mean) / (right + wrong + 3)))
    estimator.observe(seen(ONE, [0.0, 0.0], 1, version=4))
    right, wrong = 0.5 * right, 0.5 * wrong + 2
    assert predicted(estimator, 4)[0] == pytest.approx((right + 1) / (right + wrong + 2))


def test_a_group_that_comes_late_counts_as_what_is_left_of_it() -> None:
    groups = [seen(ONE, [1.0, 0.0, 1.0], 0), seen(ONE, [0.0, 0.0], 1, version=3)]
    there, back = TaskCounts(0.9, 0.5), TaskCounts(0.9, 0.5)
    for group in groups:
        there.observe(group)
    for group in reversed(groups):
        back.observe(group)
    assert there.state() == back.state()
    assert predicted(back, 1)[0] == predicted(back, 3)[0], "an older version than it knows is asked of as its latest"


def test_nothing_is_forgotten_where_all_is_kept() -> None:
    estimator = TaskCounts(1.0, 1.0)
    for version, rewards in ((0, [1.0, 0.0]), (7, [0.0, 0.5]), (9, [0.0])):
        estimator.observe(seen(ONE, rewards, version, version))
    assert predicted(estimator, 500)[0] == pytest.approx((1.5 + 1) / (5 + 2))


def test_what_failed_and_what_was_given_up_are_no_evidence() -> None:
    estimator = TaskCounts()
    estimator.observe(seen(ONE, [0.0, 0.0], failed=[0], pruned=[1]))
    assert estimator.state() == {"seen": {}} and predicted(estimator, 0)[0] == 0.5
    estimator.observe(seen(ONE, [1.0, 0.0, 0.0], failed=[1], pruned=[2]))
    assert predicted(estimator, 0)[0] == pytest.approx(2 / 3)


def test_it_goes_on_where_it_was_and_its_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, again = TaskCounts(), TaskCounts()
    estimator.observe(seen(ONE, [1.0, 0.0, 0.0]))
    again.restore(json.loads(json.dumps(estimator.state())))
    assert predicted(again, 3) == predicted(estimator, 3) and again.state() == estimator.state()
    monkeypatch.setattr(pass_rate_counts, "_KNOWN", 2)
    for index in (1, 2):
        estimator.observe(seen(Arithmetic(1).task(index), [1.0]))
    estimator.observe(seen(Arithmetic(1).task(1), [1.0]))
    assert list(estimator.state()["seen"]) == [Arithmetic(1).task(index).id for index in (2, 1)], (
        "those tried last stay"
    )


def test_nonsense_is_refused() -> None:
    for shares in ((0.0, 0.5), (1.1, 0.5), (0.5, 0.0), (0.5, 1.1)):
        with pytest.raises(ConfigurationError, match=f"got {shares[0]} and {shares[1]}"):
            TaskCounts(*shares)
