"""The learner's step against finite differences of what it maximizes, and its estimate against enumeration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.simulate.learner import LUCK, Learner, estimate
from strop.simulate.population import Population, populate
from strop.simulate.scenarios import SCENARIOS, Kind, Scenario
from strop.types import SUCCESS, Group, Message, Origin, Outcome, Rollout, Turn

SMALL = Scenario(
    "small",
    "two kinds that help each other",
    (Kind(tasks=3, skill=-0.7, spread=0.8), Kind(tasks=2, skill=0.4, spread=0.3, is_target=True)),
    rate=0.3,
    transfer=0.4,
    memory=0.5,
    groups_per_step=5,
    group_size=4,
)


def tried(population: Population, place: int, right: int, count: int) -> Group:
    turn = Turn(np.array([1]), np.array([2]), np.zeros(1, np.float32), np.array([0]), Message("assistant", ""))
    task = population.tasks[place]
    marks = [1.0] * right + [0.0] * (count - right)
    rollouts = [
        Rollout(f"{place}/{i}", task, (turn,), Outcome.FINISHED, reward=mark, facts={SUCCESS: mark})
        for i, mark in enumerate(marks)
    ]
    return Group(place, task, rollouts)


def test_the_estimate_of_the_gradient_has_no_bias() -> None:
    for count in (2, 3, 8):
        for probability in (0.05, 0.5, 0.9):
            ways = [math.comb(count, k) * probability**k * (1 - probability) ** (count - k) for k in range(count + 1)]
            mean = sum(way * estimate(k, count) for k, way in enumerate(ways))
            assert mean == pytest.approx(probability * (1 - probability), abs=1e-12)


def test_the_estimate_is_that_of_centred_rewards_times_scores() -> None:
    """1/(G-1) sum of (r - mean) (r - p), whatever p: the score of a coin's logit is r - p."""
    for right, count, probability in ((1, 4, 0.3), (3, 5, 0.8), (4, 4, 0.5)):
        rewards = np.array([1.0] * right + [0.0] * (count - right))
        by_hand = ((rewards - rewards.mean()) * (rewards - probability)).sum() / (count - 1)
        assert estimate(right, count) == pytest.approx(by_hand)
    assert estimate(1, 1) == estimate(0, 0) == 0.0


def test_a_step_goes_along_the_gradient_of_the_mean_probability() -> None:
    """Features whose products are the learner's; theta moved along finite differences; the same logits come out."""
    population = populate(SMALL, seed=3)
    learner = Learner(population)
    drawn = [0, 0, 1, 3, 4]  # the tasks of a batch
    kernel = 0.4 ** np.abs(population.kinds[:, None] - population.kinds[None, :]) + 0.5 * np.eye(5)
    features = np.linalg.cholesky(kernel)  # [N, 5]
    start = np.linalg.solve(features, np.array([-0.7, -0.7, -0.7, 0.4, 0.4]) + population.offsets)

    def objective(theta: np.ndarray) -> float:
        probabilities = 1 / (1 + np.exp(-features @ theta))
        return float(np.mean(probabilities[drawn]))

    nudges = 1e-6 * np.eye(5)
    gradient = np.array([(objective(start + nudge) - objective(start - nudge)) / 2e-6 for nudge in nudges])
    wanted = features @ (start + SMALL.rate * gradient)
    # groups whose estimate is p (1 - p) itself: as many rollouts as make k/G (1 - k/G) G/(G - 1) come close to it
    probabilities = learner.probabilities()
    groups = [_exact(population, place, float(probabilities[place])) for place in drawn]
    learner.train(groups)
    moved = learner.skills[population.kinds] + population.offsets + learner.own
    np.testing.assert_allclose(moved, wanted, atol=2e-5)


def _exact(population: Population, place: int, probability: float) -> Group:
    share = 0.5 - math.sqrt(0.25 - probability * (1 - probability) * 3 / 4)  # share (1 - share) 4/3 = p (1 - p)
    group = tried(population, place, 0, 4)
    for rollout in group.rollouts:
        rollout.facts[SUCCESS] = share
    return group


def test_larger_groups_weigh_more_and_a_demonstration_nothing() -> None:
    one, two = Learner(populate(SMALL, 0)), Learner(populate(SMALL, 0))
    group = tried(one.population, 0, 2, 4)
    one.train([group])
    # k/G (1 - k/G) G/(G - 1) of 2 of 4 is 1/3, and 4 of 20 rollouts weigh 1/5
    assert one.skills - two.skills == pytest.approx([0.3 / 15, 0.3 * 0.4 / 15])
    assert one.own == pytest.approx([0.3 * 0.5 / 15, 0, 0, 0, 0])
    helped = tried(two.population, 0, 2, 4)
    for rollout in helped.rollouts:
        rollout.origin = Origin.TEACHER
    two.train([helped])
    assert two.skills.tolist() == [-0.7, 0.4] and two.version == 1
    three = Learner(populate(SMALL, 0))
    three.train([tried(three.population, 0, 4, 8)])
    assert three.skills[0] + 0.7 == pytest.approx(0.3 * (8 / 20) * (4 / 14))


def test_impossible_and_broken_tasks_teach_nothing() -> None:
    kinds = (Kind(tasks=10, impossible=0.3, broken=0.2, is_target=True),)
    population = populate(replace(SMALL, kinds=kinds), seed=1)
    learner = Learner(population)
    probabilities = learner.probabilities()
    assert (probabilities == 0).sum() == population.is_impossible.sum() == 3
    assert (probabilities == LUCK).sum() == population.is_broken.sum() == 2
    place = int(np.flatnonzero(population.is_broken)[0])
    before = learner.heldout()
    learner.train([tried(population, place, 2, 4)])
    assert learner.heldout() == before and learner.probabilities().tolist() == probabilities.tolist()


def test_heldout_accuracy_is_about_the_target_alone() -> None:
    learner = Learner(populate(replace(SMALL, transfer=0.0), 0))
    spread = np.random.default_rng(0).normal(0.4, 0.3, 200_000)
    assert learner.heldout() == pytest.approx(float((1 / (1 + np.exp(-spread))).mean()), abs=1e-3)
    before = learner.heldout()
    learner.train([tried(learner.population, 0, 2, 4)])
    assert learner.heldout() == before
    learner.train([tried(learner.population, 3, 2, 4)])
    assert learner.heldout() > before


def test_slopes_are_those_of_heldout_accuracy() -> None:
    """By finite differences: a unit of gradient at a kind moves every kind by its transfer."""
    scenario = SCENARIOS["ladder"]
    learner = Learner(populate(scenario, 0))
    for kind, slope in enumerate(learner.slopes()):
        ends = []
        for nudge in (1e-5, -1e-5):
            other = Learner(populate(scenario, 0))
            other.skills = other.skills + nudge * 0.6 ** np.abs(np.arange(6) - kind)
            ends.append(other.heldout())
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_the_population_is_what_the_scenario_says() -> None:
    scenario = SCENARIOS["ladder-hidden"]
    population, again, other = populate(scenario, 5), populate(scenario, 5), populate(scenario, 6)
    assert population.tasks == again.tasks and (population.offsets == again.offsets).all()
    assert (population.offsets != other.offsets).any()
    assert [env.num_tasks() for env in population.envs] == [44] * 6
    assert [int(population.is_impossible[population.kinds == kind].sum()) for kind in range(6)] == [22] * 6
    assert all(task.level == kind for task, kind in zip(population.tasks, population.kinds, strict=True))


def test_levels_that_lie_say_nothing_and_keep_their_numbers() -> None:
    population = populate(replace(SCENARIOS["ladder"], lies=True), 0)
    levels = np.array([task.level for task in population.tasks])
    assert sorted(levels) == sorted(population.kinds)
    assert abs(np.corrcoef(levels, population.kinds)[0, 1]) < 0.2
    assert {task.level for task in population.envs[2].members} == {2}


def test_refuses_scenarios_that_mean_nothing() -> None:
    with pytest.raises(ConfigurationError, match="needs a kind that is a target, has none of 1"):
        Scenario("x", "", (Kind(),))
    with pytest.raises(ConfigurationError, match="transfer from 0 to 1"):
        replace(SMALL, transfer=1.5)
    with pytest.raises(ConfigurationError, match="fit in 0 to 1"):
        Kind(impossible=0.6, broken=0.6)
    with pytest.raises(ConfigurationError, match="tasks >= 1"):
        Kind(tasks=0)
    env = populate(SMALL, 0).envs[0]
    with pytest.raises(ConfigurationError, match="no held-out tasks"):
        env.task(0, heldout=True)
