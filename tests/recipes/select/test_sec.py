"""SEC's values by hand, what counts, and that choices go on after a restart."""

from __future__ import annotations

import json
from collections import Counter
from math import exp, sqrt

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.support.bandit_metrics import contrasts
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.errors import ConfigurationError
from strop.recipes.select.sec import LevelBandit
from strop.types import SUCCESS, Origin
from tests.building import make_group
from tests.control.samplers.groups import seen

ENVS = (Arithmetic(1), Arithmetic(4), Countdown(4))
EASY, EVEN, HARD = (env.task(0) for env in ENVS)


def even(values: list[float]) -> list[float]:
    """softmax in plain numbers."""
    powers = [exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def test_the_contrast_of_a_group_by_hand() -> None:
    """One of four: mean .25, spread sqrt(.1875); three at .25 and one at .75 of it."""
    found = contrasts(make_group([1.0, 0.0, 0.0, 0.0]))
    assert found == pytest.approx([0.75 / sqrt(0.1875), *[0.25 / sqrt(0.1875)] * 3])
    for right in range(9):
        share = right / 8
        assert contrasts(make_group([1.0] * right + [0.0] * (8 - right))).mean() == pytest.approx(
            2 * sqrt(share * (1 - share))
        )
    assert contrasts(make_group([0.7, 0.7])).tolist() == [0.0, 0.0] and contrasts(make_group([])).tolist() == []
    assert contrasts(make_group([0.25, 0.75])) == pytest.approx([1.0, 1.0]), "in units of its own spread"


def test_only_own_rollouts_and_the_envs_outcome_make_a_contrast() -> None:
    group = make_group([1.0, 0.0, 5.0, 1.0, 0.0], failed=[3], pruned=[4])
    group.rollouts[2].origin = Origin.TEACHER
    assert contrasts(group) == pytest.approx([1.0, 1.0])
    shaped = make_group([1.0, 0.8])
    for rollout in shaped.rollouts:
        rollout.rewards, rollout.facts[SUCCESS] = {"outcome": 1.0, "overlong": rollout.reward - 1}, 1.0
    assert contrasts(shaped).tolist() == [0.0, 0.0]


def test_values_move_once_per_version_by_the_mean_over_rollouts() -> None:
    sampler = LevelBandit(ENVS)
    assert sampler.probabilities() == pytest.approx([1 / 3] * 3)
    sampler.observe(seen(EVEN, [1.0, 0.0], 0))  # mean |A| 1, of two rollouts
    sampler.observe(seen(EVEN, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 1))  # 0, of six: together 2 / 8
    sampler.observe(seen(EASY, [1.0, 1.0], 2))
    assert sampler.probabilities() == pytest.approx([1 / 3] * 3), "not before weights move"
    sampler.next(1, Counts())
    assert sampler.probabilities() == pytest.approx(even([0.0, 0.125, 0.0]))
    sampler.observe(seen(EVEN, [1.0, 0.0], 3, version=1))
    sampler.next(2, Counts())
    # .125 + .5 * (1 - .125)
    assert sampler.probabilities() == pytest.approx(even([0.0, 0.5625, 0.0]))
    sampler.next(5, Counts())
    assert sampler.probabilities() == pytest.approx(even([0.0, 0.5625, 0.0])), (
        "an arm that was not sampled keeps its value"
    )


def test_an_arm_may_decay_with_every_version_without_a_sample() -> None:
    sampler = LevelBandit(ENVS, rate=0.25, temperature=0.5, fades=True)
    sampler.observe(seen(HARD, [1.0, 0.0]))
    sampler.next(1, Counts())
    assert sampler.probabilities() == pytest.approx(even([0.0, 0.0, 0.25 / 0.5]))
    sampler.next(3, Counts())
    assert sampler.probabilities() == pytest.approx(even([0.0, 0.0, 0.25 * 0.75**2 / 0.5]))


def test_a_steady_arm_goes_to_two_roots_of_p_times_not_p() -> None:
    sampler = LevelBandit(ENVS)
    for version in range(40):
        sampler.observe(seen(EASY, [1.0] * 7 + [0.0], 2 * version, version))
        sampler.observe(seen(EVEN, [1.0, 0.0, 0.0, 1.0], 2 * version + 1, version))
        sampler.next(version + 1, Counts())
    assert sampler.probabilities() == pytest.approx(even([2 * sqrt(7 / 64), 1.0, 0.0]))


def test_the_order_in_which_groups_come_in_changes_nothing() -> None:
    groups = [seen(EVEN, [1.0, 0.0, 0.0], 0), seen(EVEN, [1.0, 0.0, 0.7], 1), seen(HARD, [0.1, 0.0, 0.3], 2)]
    there, back = LevelBandit(ENVS), LevelBandit(ENVS)
    for group in groups:
        there.observe(group)
    for group in reversed(groups):
        back.observe(group)
    assert there.next(1, Counts()) == back.next(1, Counts()) and there.state() == back.state()


def test_what_failed_is_no_evidence_and_a_foreign_task_no_arm() -> None:
    sampler = LevelBandit(ENVS[:2])
    before = sampler.state()
    sampler.observe(seen(EVEN, [1.0, 0.0], failed=[0, 1]))
    sampler.observe(seen(HARD, [1.0, 0.0]))
    assert sampler.state() == before
    sampler.observe(seen(EVEN, [1.0, 0.0, 1.0], failed=[2]))
    sampler.next(1, Counts())
    assert sampler.learn([]) == pytest.approx(
        {
            "preference": exp(0.5) / (1 + exp(0.5)) - 0.5,
            "probability/arithmetic:1": 1 / (1 + exp(0.5)),
            "probability/arithmetic:4": exp(0.5) / (1 + exp(0.5)),
        }
    )


def test_arms_are_sampled_with_their_probabilities_and_tasks_in_order() -> None:
    sampler = LevelBandit(ENVS[:2], temperature=0.5)
    sampler.observe(seen(EVEN, [1.0, 0.0]))
    tasks = [sampler.next(1, Counts()) for _ in range(4000)]
    probability = 1 / (1 + exp(-1))  # Q = .5 and 0, at temperature .5
    counts = Counter(task.level for task in tasks)
    assert abs(counts[4] / 4000 - probability) < 4 * sqrt(probability * (1 - probability) / 4000)
    assert [task for task in tasks if task.level == 4][:3] == [ENVS[1].task(index) for index in range(3)]
    other = LevelBandit(ENVS[:2], temperature=0.5, seed=1)
    assert [other.next(0, Counts()).level for _ in range(30)] != [task.level for task in tasks[:30]]


def test_state_is_restored() -> None:
    sampler, again = LevelBandit(ENVS), LevelBandit(ENVS)
    for number, task in enumerate((EASY, EVEN, HARD, EVEN)):
        sampler.next(number // 2, Counts())
        sampler.observe(seen(task, [1.0, 0.0, 0.0][: 2 + number % 2], number, number // 2))
    again.restore(json.loads(json.dumps(sampler.state())))
    assert [again.next(step, Counts()) for step in (1, 2, 2, 3)] == [
        sampler.next(step, Counts()) for step in (1, 2, 2, 3)
    ]
    assert again.state() == sampler.state() and again.probabilities().tolist() == sampler.probabilities().tolist()


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="got 0 and 1"):
        LevelBandit(ENVS, rate=0, temperature=1)
    with pytest.raises(ConfigurationError, match=r"got 1\.5 and"):
        LevelBandit(ENVS, rate=1.5)
    with pytest.raises(ConfigurationError, match=r"0\.5 and 0"):
        LevelBandit(ENVS, temperature=0)
    with pytest.raises(ConfigurationError, match="differ in name or level"):
        LevelBandit(())
