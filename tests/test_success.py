"""What is known of a task's difficulty: the environment's word alone, and for as many rollouts as each stands for."""

from __future__ import annotations

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.success import SURVIVAL, is_right, successes
from tests.building import make_group


def test_a_estimator_takes_the_weights() -> None:
    group, estimator = make_group([1.0, 0.0, 0.0], pruned=[2]), Counts()
    for rollout, probability in zip(group.rollouts, (0.25, 0.5, 0.5), strict=True):
        rollout.facts[SURVIVAL] = probability
    estimator.observe(group)
    assert estimator.predict([group.task], 1)[0] == pytest.approx([5 / 8])  # 4 right ones of 6, and one of each before
    again = Counts()
    again.restore(estimator.state())
    assert again.state() == estimator.state()


@pytest.mark.parametrize("name", ["outcome", "checked"])
def test_the_envs_word_counts_whatever_else_was_paid(name: str) -> None:
    """A right answer that was priced for its length, and a wrong one that was praised for its form."""
    group = make_group([0.25, 0.5])
    for rollout, by_env in zip(group.rollouts, (1.0, 0.0), strict=True):
        rollout.rewards = {name: by_env, "other": rollout.reward - by_env}
    assert successes(group) == (1.0, 2.0)
    for rollout in group.rollouts:
        rollout.rewards = {"other": rollout.reward}
    assert successes(group) == (0.75, 2.0), "where it was not asked, what was paid"


def test_what_rounding_takes_from_a_weighted_sum_is_not_missed() -> None:
    assert 0.7 + 0.2 + 0.1 < 1 and is_right(0.7 + 0.2 + 0.1) and not is_right(0.99999)
    assert is_right(0.5, 0.5) and not is_right(0.49, 0.5)
