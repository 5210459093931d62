"""IPO, KTO, ORPO, SimPO and direct preference, each against the numbers of its own paper."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.objective.direct_preference import DirectPreference
from strop.roles import Loss
from strop.training.losses.kto import Kto
from strop.training.losses.preference_pairs import Ipo, Orpo, SimPo
from tests.building import make_batch, say, written


def run(
    loss: Loss, policy: list[list[float]], rewards: list[float], reference: list[list[float]] | None = None
) -> tuple[float, list[float]]:
    """The mean over rollouts of their losses, and the gradient on each rollout's whole log-probability."""
    share = [[1 / (len(policy) * len(each))] * len(each) for each in policy]
    batch, output = make_batch(policy, rewards=rewards, reference=reference, share=share), say(policy)
    value, _ = loss(output, batch)
    total = (batch.share * value).sum()
    total.backward()
    assert output.logprobs.grad is not None
    first = [int((batch.rollouts == index).nonzero()[1]) for index in range(len(policy))]
    return float(total.detach()), output.logprobs.grad[first].tolist()


def test_ipo_wants_a_margin_and_no_more() -> None:
    at_reference = run(Ipo(0.1), [[-1.0, -1.0], [-2.0]], [1.0, 0.0], [[-1.0, -1.0], [-2.0]])
    assert at_reference[0] == pytest.approx(1 / (4 * 0.01)) and at_reference[1] == pytest.approx([-10.0, 10.0])
    there = run(Ipo(0.1), [[-1.0, -1.0], [-2.0]], [1.0, 0.0], [[-3.0, -4.0], [-2.0]])  # h = 5 = 1 / (2 tau)
    assert there[0] == pytest.approx(0.0) and there[1] == pytest.approx([0.0, 0.0])
    beyond = run(Ipo(0.1), [[-1.0, -1.0], [-2.0]], [1.0, 0.0], [[-3.0, -5.0], [-2.0]])
    assert beyond[1] == pytest.approx([2.0, -2.0])  # pulled back, unlike DPO
    averaged = run(Ipo(0.1, is_averaged=True), [[-1.0, -1.0], [-2.0]], [1.0, 0.0], [[-1.0, -1.0], [-2.0]])
    assert averaged[1] == pytest.approx([-5.0, 10.0])


def test_kto_at_the_reference_and_beyond() -> None:
    value, gradient = run(Kto(0.1, 1.5, 2.0), [[-1.0, -1.0], [-2.0]], [1.0, 0.0], [[-1.0, -1.0], [-2.0]])
    assert value == pytest.approx((0.75 + 1.0) / 2)
    assert gradient == pytest.approx([-1.5 * 0.1 / 4 / 2, 2.0 * 0.1 / 4 / 2])  # a mean over 2 rollouts
    # g = (3, 1): z = 2; desirable 1 - s(1), undesirable 1 - s(1)
    value, _ = run(Kto(1.0), [[-1.0], [-2.0]], [1.0, 0.0], [[-4.0], [-3.0]])
    assert value == pytest.approx(1 - 1 / (1 + exp(-1)))
    value, _ = run(Kto(1.0), [[-4.0], [-3.0]], [1.0, 0.0], [[-1.0], [-2.0]])  # g = (-3, -1): z is never below 0
    assert value == pytest.approx((1 - 1 / (1 + exp(3)) + 1 - 1 / (1 + exp(-1))) / 2)


def test_orpo_with_equal_odds_by_hand() -> None:
    # P = e^-1 for both: odds term lam log 2; gradient on the chosen mean: -1 - lam / (2 (1 - P)).
    value, gradient = run(Orpo(0.1), [[-1.0, -1.0], [-1.0]], [1.0, 0.0])
    assert value == pytest.approx(1.0 + 0.1 * log(2))
    odds = 0.1 / (2 * (1 - exp(-1)))
    assert gradient == pytest.approx([(-1 - odds) / 2, odds])  # the chosen one has two tokens
    assert run(Orpo(0.0), [[-1.0, -1.0], [-1.0]], [1.0, 0.0])[1] == pytest.approx([-0.5, 0.0])  # imitation


def test_simpo_with_equal_means_by_hand() -> None:
    value, gradient = run(SimPo(2.0, 1.0), [[-1.0, -1.0], [-1.0]], [1.0, 0.0])
    slope = 2.0 / (1 + exp(-1))  # beta s(gamma)
    assert value == pytest.approx(log(1 + exp(1))) and gradient == pytest.approx([-slope / 2, slope])


@pytest.mark.parametrize(("conservatism", "expected"), [(1.0, [5.0, -5.0]), (0.5, [7.310586, -3.655293])])
def test_direct_preference_by_hand(conservatism: float, expected: list[float]) -> None:
    # mean NLL 0.2 on both, tau 0.1; dL/dd, that is minus the gradient on the mean log-probability
    value, gradient = run(DirectPreference(0.1, conservatism), [[-0.2], [-0.2]], [1.0, 0.0])
    assert [-each for each in gradient] == pytest.approx(expected)
    assert value == pytest.approx(log(1 + exp(2.0 - 2.0 * conservatism)))


def test_direct_preference_is_simpo_without_a_margin() -> None:
    policy = [
        [-0.3, -1.1],
        [-0.9],
    ]
    ours, theirs = (run(loss, policy, [0.0, 1.0]) for loss in (DirectPreference(0.5), SimPo(2.0, 0.0)))
    assert ours[0] == pytest.approx(theirs[0]) and ours[1] == pytest.approx(theirs[1])


def test_direct_preference_takes_all_pairs_of_siblings_but_ties() -> None:
    # rewards 2, 1, 1: two pairs, at equal distances: mean log 2
    value, gradient = run(DirectPreference(1.0), [[-1.0]] * 3, [2.0, 1.0, 1.0])
    assert value == pytest.approx(log(2)) and gradient == pytest.approx([-0.5, 0.25, 0.25])
    assert run(DirectPreference(), [[-1.0]] * 3, [1.0] * 3) == (0.0, [0.0] * 3)


@pytest.mark.parametrize("loss", [Ipo(), Orpo(), SimPo()], ids=repr)
def test_pairs_are_pairs_and_ties_teach_nothing(loss: Loss) -> None:
    reference = [[-1.0], [-2.0]]
    assert run(loss, [[-1.0], [-2.0]], [1.0, 1.0], reference) == (0.0, [0.0, 0.0])
    with pytest.raises(ConfigurationError, match=r"exactly 2 rollouts, got \[3\]"):
        run(loss, [[-1.0]] * 3, [1.0, 0.0, 0.0], [[-1.0]] * 3)


@pytest.mark.parametrize("loss", [Ipo(), Kto()], ids=repr)
def test_a_reference_is_needed(loss: Loss) -> None:
    with pytest.raises(ConfigurationError, match="reference"):
        loss(say([[-1.0]] * 2), make_batch([[-1.0]] * 2))


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="tau > 0, got 0"):
        Ipo(0.0)
    with pytest.raises(ConfigurationError, match="temperature > 0, got -1"):
        DirectPreference(-1.0)


def test_odds_of_a_certain_rollout_are_held() -> None:
    batch, output = make_batch([[0.0], [-1.0]], rewards=[1.0, 0.0]), say([[0.0], [-1.0]])
    value, _ = Orpo()(output, batch)
    value.sum().backward()
    assert torch.isfinite(value).all() and all(map(abs, written(batch, output.logprobs.grad)))
