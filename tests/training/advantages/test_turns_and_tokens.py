"""Advantage by turn, role and token: training.advantages.turn_mean, per_role, token_returns and maximum_likelihood."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.training.advantages.gae import Gae
from strop.training.advantages.group_relative import GroupMean, MaximumLikelihood
from strop.training.advantages.per_turn import PerRole, TurnMean
from strop.training.advantages.token_returns import TokenReturns
from strop.types import SUCCESS, Group, Sampling
from tests.building import advantages_of, make_group, turn


def talked(
    paid: list[tuple[float, ...]], lengths: list[tuple[int, ...]], roles: list[tuple[int, ...]] | None = None
) -> Group:
    """Rollouts of several turns, with what the environment paid and how many tokens each has."""
    group = make_group([sum(each) for each in paid], turn_rewards=paid)
    for index, rollout in enumerate(group.rollouts):
        rollout.turns = tuple(turn(size) for size in lengths[index])
        if roles is not None:
            policy_names = zip(rollout.turns, roles[index], strict=True)
            rollout.turns = tuple(
                replace(each, sampling=Sampling(policy_name=str(role))) for each, role in policy_names
            )
    return group


def advantages(group: Group) -> list[list[float]]:
    return [[] if t.advantages is None else t.advantages.tolist() for t in group.rollouts]


def test_each_turn_against_the_siblings_same_turn() -> None:
    # returns at discount .5: (0 + .5, 1) and (1,): turn 0 has mean .75, turn 1 mean 1
    group = talked([(0.0, 1.0), (1.0,)], [(2, 1), (1,)])
    TurnMean(discount=0.5)([group])
    assert advantages(group) == [[-0.25, -0.25, 0.0], [0.25]]


def test_one_turn_is_the_group_mean_and_an_unpaid_rollout_has_its_reward_at_the_end() -> None:
    group, plain = make_group([1.0, 0.0, 0.5]), make_group([1.0, 0.0, 0.5])
    for advantage in (TurnMean(), PerRole()):
        advantage([group])
        GroupMean()([plain])
        assert advantages_of(group) == pytest.approx(advantages_of(plain))


def test_each_role_has_its_own_baseline() -> None:
    # returns: planner 1, 0 (mean .5); solver 1, 1, 0, 0 (mean .5)
    group = talked([(0.0, 0.0, 1.0), (0.0, 0.0, 0.0)], [(1, 1, 1), (1, 1, 1)], [(7, 2, 2), (7, 2, 2)])
    PerRole()([group])
    assert advantages(group) == [[0.5, 0.5, 0.5], [-0.5, -0.5, -0.5]]
    # a role that only one rollout played is compared with itself alone
    lone = talked([(1.0, 0.0), (0.0,)], [(1, 1), (1,)], [(0, 5), (0,)])
    PerRole()([lone])
    assert advantages(lone) == [[0.5, 0.0], [-0.5]]


def test_the_kl_is_paid_on_its_token_and_all_before_it_feel_it() -> None:
    group = make_group([1.0], lengths=[3])
    rollout = group.rollouts[0]
    rollout.policy_statistics = {
        "logprobs": np.array([-1.0, -1.0, -1.0], dtype=np.float32),
        "reference_logprobs": np.array([-1.0, -2.0, -1.0], dtype=np.float32),
    }
    TokenReturns(kl=0.1)([group])
    assert rollout.returns is not None and rollout.returns.tolist() == pytest.approx([0.9, 0.9, 1.0])
    # mean .9333, std sqrt(2 * .0333^2 + .0667^2) / sqrt(3) = .04714
    assert advantages(group)[0] == pytest.approx([-math.sqrt(0.5), -math.sqrt(0.5), math.sqrt(2)], abs=1e-4)
    with pytest.raises(ConfigurationError, match="no policy statistic logprobs"):
        TokenReturns()([make_group([1.0])])


def test_without_kl_and_discount_every_token_has_the_reward() -> None:
    group = make_group([1.0, 0.0], lengths=[1, 3])
    TokenReturns(kl=0.0)([group])
    # mean .25, population std sqrt(.1875)
    assert advantages(group) == [
        pytest.approx([0.75 / math.sqrt(0.1875)]),
        pytest.approx([-0.25 / math.sqrt(0.1875)] * 3),
    ]
    assert TokenReturns(kl=0.0).needs == frozenset()


def test_maxrl_by_hand() -> None:
    group, lost = make_group([1.0, 0.0, 0.0, 0.0]), make_group([0.0, 0.0], number=1)
    MaximumLikelihood()([group, lost])
    assert advantages_of(group) == [3.0, -1.0, -1.0, -1.0]
    assert advantages_of(lost) == [0.0, 0.0]
    scaled = make_group([10.0, 1.0])  # on a scale from 1 to 10
    scaled.rollouts[1].facts[SUCCESS] = 0.0
    MaximumLikelihood()([scaled])
    assert advantages_of(scaled) == [1.0, -1.0]


def test_maxrl_follows_the_series_of_the_log_success_rate() -> None:
    """Enumerated over groups of 4: log p = -sum_k (1 - p)^k / k, whose first G - 1 terms are differentiated."""
    size, p = 4, 0.23
    found = 0.0
    for wins in itertools.product((0, 1), repeat=size):
        group = make_group([float(win) for win in wins])
        MaximumLikelihood()([group])
        advantage = [value for value in advantages_of(group) if value is not None]
        score = [1 - p if win else -p for win in wins]  # d log pi / d theta, p = sigmoid(theta)
        probability = math.prod(p if win else 1 - p for win in wins)
        found += probability * sum(a * s for a, s in zip(advantage, score, strict=True)) / size
    slope = p * (1 - p)  # dp / d theta
    assert found == pytest.approx(sum((1 - p) ** (k - 1) for k in range(1, size)) * slope, abs=1e-7)


@pytest.mark.parametrize(("length", "expected"), [(1, 1.0), (2, 0.975), (10, 0.8025), (100, 0.1988)])
def test_a_trace_below_one_makes_credit_fall_with_length(length: int, expected: float) -> None:
    """Concise reasoning's bias, with a critic that says 0: right answers are better short, wrong ones less bad long."""
    group = make_group([1.0, -1.0], lengths=[length, length])
    for rollout in group.rollouts:
        rollout.values = np.zeros(length, dtype=np.float32)
    Gae(trace=0.95, whiten=False)([group])
    found = [float(t.advantages.mean()) for t in group.rollouts if t.advantages is not None]
    assert found == pytest.approx([expected, -expected], abs=5e-5)
