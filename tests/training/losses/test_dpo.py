from __future__ import annotations

from math import exp, log

import pytest

from strop.errors import ConfigurationError
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from tests.building import make_batch, make_group, say, written


def sequence_mean(*lengths: int) -> list[list[float]]:
    return [list(share) for share in SequenceMean()([make_group([0.0] * len(lengths), lengths)]).values()]


def test_at_the_reference() -> None:
    # h = 0: L = log 2; dL/dh = -beta / 2, so -beta / 2 on each chosen token and +beta / 2 on each rejected one.
    # The rejected rollout stands first: the reward decides, not the order.
    numbers = [[-1.0, -2.0], [-0.5, -0.5, -3.0]]
    batch = make_batch(numbers, rewards=[0.0, 1.0], reference=numbers, share=sequence_mean(2, 3))
    output = say(numbers)
    value, _ = Dpo(beta=0.1)(output, batch)
    total = (batch.share * value).sum()
    total.backward()
    assert total.item() == pytest.approx(log(2), abs=1e-7)  # shares are float32
    assert written(batch, output.logprobs.grad) == pytest.approx([0.05, 0.05, -0.05, -0.05, -0.05], abs=1e-7)


def test_mean_over_pairs() -> None:
    # Pair 0: gains (.6, -.4) -> h = 1, -log s(.5 * 1) = log(1 + e^-.5) = 0.4740770.
    # Pair 1: gains (0, 2) with the second rejected -> h = -2, log(1 + e^1) = 1.3132617.
    reference = [[-1.0, -1.0], [-1.0], [-1.0], [-3.0]]
    policy = [[-0.6, -0.8], [-1.4], [-1.0], [-1.0]]
    batch = make_batch(policy, None, [0, 0, 1, 1], [1.0, 0.0, 0.9, 0.2], reference, sequence_mean(2, 1, 1, 1))
    value, metrics = Dpo(beta=0.5)(say(policy), batch)
    expected = (log(1 + exp(-0.5)) + log(1 + exp(1.0))) / 2
    assert (batch.share * value).sum().item() == pytest.approx(expected, abs=1e-6)
    assert metrics == pytest.approx({"preferred_share": 0.5, "margin": (0.5 - 1.0) / 2}, abs=1e-6)


def test_equal_rewards_prefer_nothing() -> None:
    numbers = [[-1.0], [-2.0]]
    batch = make_batch(numbers, rewards=[1.0, 1.0], reference=[[-2.0], [-2.0]])
    output = say(numbers)
    value, _ = Dpo()(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([log(2)] * 2)
    assert written(batch, output.logprobs.grad) == [0.0, 0.0]


def test_refuses_what_is_not_a_pair_and_a_missing_reference() -> None:
    three = [[-1.0]] * 3
    with pytest.raises(ConfigurationError, match=r"exactly 2 rollouts, got \[3\]"):
        Dpo()(say(three), make_batch(three, reference=three))
    with pytest.raises(ConfigurationError, match="reference"):
        Dpo()(say(three), make_batch(three))
