"""POISE (strop.recipes.value.poise): an unbiased baseline from siblings, and a ridge regression that finds a rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.recipes.value.poise import Probe, poise
from strop.training.advantages.constant import Residual
from strop.types import Group
from tests.building import advantages_of, make_group


def noted(rewards: list[float], seed: int, number: int = 0) -> Group:
    """A group whose prompt states predict the mean reward, exactly, among five states of noise."""
    group = make_group(rewards, lengths=[4] * len(rewards), number=number)
    stream = np.random.default_rng(seed)
    for rollout in group.rollouts:
        rollout.policy_statistics = {
            "hidden": stream.normal(size=(4, 3)).astype(np.float32),
            "entropy": stream.uniform(size=4).astype(np.float32),
            "prompt_hidden": np.full((12, 1), np.mean(rewards), dtype=np.float32),
        }
    return group


def groups_of(count: int, seed: int = 0) -> list[Group]:
    stream = np.random.default_rng(seed)
    drawn = [float(p) for p in stream.integers(0, 2, count)]
    return [noted([p, p], 100 * seed + i, i) for i, p in enumerate(drawn)]


def test_cross_baselines_leave_the_gradient_exact_and_own_ones_do_not() -> None:
    """pi = (.25, .75), rewards (1, 0), a probe that says (.9, .1): enumerated over pairs of rollouts."""
    probability, reward, predicted = np.array([0.25, 0.75]), np.array([1.0, 0.0]), np.array([0.9, 0.1])
    score = np.eye(2) - probability  # grad log pi of each answer
    cross, own = np.zeros(2), np.zeros(2)
    for a in range(2):
        for b in range(2):
            weight = probability[a] * probability[b]
            pair = make_group([reward[a], reward[b]])
            for rollout, value in zip(pair.rollouts, (predicted[b], predicted[a]), strict=True):
                rollout.values = np.array([value], dtype=np.float32)
            Residual()([pair])
            first, second = (float(x) for x in advantages_of(pair) if x is not None)
            cross += weight * (first * score[a] + second * score[b]) / 2
            own += weight * ((reward[a] - predicted[a]) * score[a] + (reward[b] - predicted[b]) * score[b]) / 2
    assert cross.tolist() == pytest.approx([0.1875, -0.1875], abs=1e-7)
    assert own.tolist() == pytest.approx([0.0375, -0.0375])


def test_it_predicts_before_it_learns_and_finds_the_rule() -> None:
    probe = Probe(ridge=1e-6)
    probe.open(Path(), 0)
    seen, unseen = groups_of(40), groups_of(20, seed=1)
    probe.predict(seen)
    assert all(float(t.values.sum()) == 0 for g in seen for t in g.rollouts if t.values is not None)
    first = probe.learn(seen)
    assert first["value_bias"] < 0  # values are 0 before the first fit
    probe.predict(unseen)
    for group in unseen:
        for rollout in group.rollouts:
            assert rollout.values is not None and rollout.values.tolist() == pytest.approx(
                [rollout.reward] * 4, abs=1e-4
            )
    assert probe.learn(unseen)["explained_variance"] == pytest.approx(1.0, abs=1e-4)


def test_the_value_of_a_rollout_is_what_its_siblings_predict() -> None:
    probe = Probe(ridge=1.0)
    probe.learn(groups_of(10))
    group = noted([1.0, 0.0, 0.0], seed=7)
    predicted = [probe.expected_reward(rollout) for rollout in group.rollouts]
    probe.predict([group])
    assert group.rollouts[0].values is not None
    assert float(group.rollouts[0].values[0]) == pytest.approx((predicted[1] + predicted[2]) / 2, abs=1e-6)
    assert all(0.0 <= value <= 1.0 for value in predicted)


def test_the_target_of_a_rollout_is_the_mean_reward_of_the_others() -> None:
    probe = Probe()
    probe.learn([noted([1.0, 0.0, 0.0], seed=7), noted([1.0], seed=8, number=1)])
    ((_, targets),) = probe._batches
    found = probe.learn([noted([1.0, 0.0, 0.0], seed=7)])  # no prediction yet: the values are 0
    assert found["value_bias"] == pytest.approx(-1 / 3)
    assert targets.tolist() == [0.0, 0.5, 0.5]  # a rollout without siblings teaches nothing


def test_a_resumed_probe_predicts_the_same(tmp_path: Path) -> None:
    probe, again = Probe(window=2), Probe(window=2)
    for seed in range(4):
        probe.learn(groups_of(5, seed))
    probe.save(tmp_path)
    again.resume(tmp_path)
    rollout = noted([1.0, 0.0], seed=9).rollouts[0]
    assert again.expected_reward(rollout) == probe.expected_reward(rollout)
    Probe().save(tmp_path)
    again.resume(tmp_path)
    assert again.expected_reward(rollout) == 0.0


def test_refusals() -> None:
    with pytest.raises(ConfigurationError, match="no policy statistic entropy"):
        probe = Probe()
        probe.learn(groups_of(3))
        probe.predict([make_group([1.0, 0.0])])
    with pytest.raises(ConfigurationError, match="window > 0"):
        Probe(window=0)
    run = poise(Setting(group_size=1))
    assert Probe().problems(run) == ["a baseline from siblings needs group_size >= 2, got 1"]
    with pytest.raises(ConfigurationError, match="one value per token: 1 tokens, got 0"):
        Residual()([make_group([1.0])])


def test_what_a_probe_reads_by_hand() -> None:
    """The mean of the last two states of prompt and completion; of the entropies 1, 2 and 6 the mean, spread and
    largest.
    """
    rollout = make_group([0.0], lengths=[3]).rollouts[0]
    rollout.policy_statistics = {
        "prompt_hidden": np.array([[9.0], [1.0], [2.0]], dtype=np.float32),
        "hidden": np.array([[9.0, 9.0], [1.0, 4.0], [3.0, 0.0]], dtype=np.float32),
        "entropy": np.array([1.0, 2.0, 6.0], dtype=np.float32),
    }
    assert Probe(tokens=2)._features(rollout).tolist() == pytest.approx([1.5, 2.0, 2.0, 3.0, (14 / 3) ** 0.5, 6.0])
