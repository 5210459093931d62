from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.objective.nft import Nft
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from tests.building import make_batch, make_group, say, written

OLD = [[-1.0, -0.5], [-2.0], [-0.7], [-1.2]]
REWARDS = [1.0, 0.0, 0.0, 0.0]  # p = 0.25


def gradient(loss: object, policy: list[list[float]] = OLD, advantages: list[float] | None = None) -> list[float]:
    """Gradient of the sum over tokens."""
    batch, output = make_batch(OLD, advantages, rewards=REWARDS), say(policy)
    loss(output, batch)[0].sum().backward()  # type: ignore[operator]
    return written(batch, output.logprobs.grad)


def test_on_policy_the_linear_weight_is_dr_grpo() -> None:
    # -(R - mean) on every token: -0.75 where right, +0.25 where wrong.
    group = make_group(REWARDS)
    GroupMean()([group])
    advantages = [float(np.asarray(t.advantages)[0]) for t in group.rollouts]
    assert gradient(Nft()) == pytest.approx([-0.75, -0.75, 0.25, 0.25, 0.25])
    assert gradient(Nft()) == pytest.approx(gradient(Clip(), advantages=advantages))


def test_on_policy_the_root_weight_is_grpo_with_the_population_deviation() -> None:
    deviation = sqrt(0.25 * 0.75)
    advantages = [(reward - 0.25) / deviation for reward in REWARDS]
    assert gradient(Nft(task_weight="root")) == pytest.approx([-1.7320508, -1.7320508, *[0.5773503] * 3])
    assert gradient(Nft(task_weight="root")) == pytest.approx(gradient(Clip(), advantages=advantages))


def test_without_negatives_it_is_imitation_of_right_rollouts() -> None:
    found = gradient(Nft(negative_weight=0.0))
    assert found == pytest.approx([-0.75, -0.75, 0.0, 0.0, 0.0])
    assert found[:2] == pytest.approx([0.75 * value for value in gradient(Likelihood())[:2]])


def test_off_policy_by_hand() -> None:
    # Right token with r = 2: -0.75 log 2. Wrong with r = 0.5: z = (1 - 0.125) / 0.75 = 7/6 > 1, above the floor; its
    # gradient is w p r / (1 - p r) = 0.75 * 0.125 / 0.875. Wrong with r = 2: z = 2/3, floored at 1: value 0, gradient
    # w p r / (1 - p)
    policy = [[-1.0 + log(2), -0.5], [-2.0 + log(0.5)], [-0.7 + log(2)], [-1.2]]
    batch, output = make_batch(OLD, rewards=REWARDS), say(policy)
    value, metrics = Nft()(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-0.75 * log(2), 0.0, -0.75 * log(7 / 6), 0.0, 0.0])
    expected = [-0.75, -0.75, 0.75 * 0.125 / 0.875, 0.75 * 0.25 * 2 / 0.75, 0.25]
    assert written(batch, output.logprobs.grad) == pytest.approx(expected)
    assert metrics["held_share"] == pytest.approx(1 / 5) and metrics["pass_rate"] == pytest.approx(0.25)


def test_a_lower_floor_raises_the_gradient_of_a_wrong_token() -> None:
    policy = [OLD[0], [-2.0 + log(2)], OLD[2], OLD[3]]
    assert gradient(Nft(negative_floor=0.5), policy)[2] == pytest.approx(0.75 * 0.25 * 2 / (1 - 0.5))  # 1 - p r
    assert gradient(Nft(), policy)[2] == pytest.approx(0.75 * 0.25 * 2 / 0.75)


def test_a_ratio_is_clipped_at_e_to_the_10_only() -> None:
    batch, output = make_batch(OLD, rewards=REWARDS), say([[-1.0 + 2.0, -0.5 + 12.0], *OLD[1:]])
    value, _ = Nft()(output, batch)
    value.sum().backward()
    assert written(batch, value)[:2] == pytest.approx([-0.75 * 2, -0.75 * 10])
    assert written(batch, output.logprobs.grad)[:2] == pytest.approx([-0.75, 0.0])


def test_rounding_is_not_counted_as_held() -> None:
    batch = make_batch(OLD, rewards=REWARDS)
    for nudge, share in ((1e-5, 0.0), (1e-2, 3 / 5)):
        _, metrics = Nft()(say([[x + nudge for x in each] for each in OLD]), batch)
        assert metrics["held_share"] == pytest.approx(share)


def test_pass_rates_and_ratios_are_bounded() -> None:
    batch, output = make_batch([[-9.0], [-30.0]], rewards=[0.0, 0.0]), say([[-9.0], [0.0]])
    value, _ = Nft()(output, batch)
    value.sum().backward()
    # p = 0.02; the second ratio is clipped at e^10, where it has no gradient
    assert written(batch, output.logprobs.grad) == pytest.approx([0.98 * 0.02 / 0.98, 0.0])
    assert float(value.detach().abs().max()) <= log(1 + exp(10))


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no task weight 'rot'"):
        Nft(task_weight="rot")
