"""CORE's choice of tasks: weights by hand, and the same choices after a restart."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.replay.core import FailureWeighted
from strop.types import Origin
from tests.building import make_group


def test_weights_by_hand_and_the_same_choices_after_a_restart() -> None:
    sampler = FailureWeighted((Arithmetic(2),), tasks=3, seed=1)
    first = [sampler.next(0, Counts()) for _ in range(4)]
    assert len({task.id for task in first[:3]}) == 3 and first[3].id in {task.id for task in first[:3]}
    group = make_group([1.0, 0.0, 0.0, 0.0, 0.0], failed=[3], pruned=[4])
    group.rollouts[1].origin = Origin.GUIDED  # with help it counts too
    sampler.observe(replace(group, task=Arithmetic(2).task(1)))
    sampler.observe(replace(make_group([1.0, 1.0]), task=Arithmetic(2).task(2)))
    sampler.observe(make_group([0.0]))  # none of its own
    assert sampler.weights().tolist() == [1 / 2, 3 / 5, 1 / 4]  # 2 of 3 failed; none of 2
    again = FailureWeighted((Arithmetic(2),), tasks=3, seed=1)
    again.restore(json.loads(json.dumps(sampler.state())))
    assert again.weights().tolist() == sampler.weights().tolist()
    assert [again.next(1, Counts()).id for _ in range(9)] == [sampler.next(1, Counts()).id for _ in range(9)]
    assert sampler.learn([])["preference"] > 0


def test_what_fails_comes_first_more_often() -> None:
    sampler, hard = FailureWeighted((Arithmetic(2),), tasks=2), Arithmetic(2).task(0)
    sampler.next(0, Counts()), sampler.next(0, Counts())
    for _ in range(3):
        sampler.observe(replace(make_group([0.0, 0.0]), task=hard))
        sampler.observe(replace(make_group([1.0, 1.0]), task=Arithmetic(2).task(1)))
    firsts = [sampler.next(step, Counts()).id == hard.id for step in range(1, 401)]
    assert sum(firsts) / 400 == pytest.approx(7 / 8, abs=0.05)  # (6 + 1) / 8 beside 1 / 8


def test_it_needs_tasks() -> None:
    with pytest.raises(ConfigurationError, match="needs environments"):
        FailureWeighted(())
