from __future__ import annotations

from math import exp, log

import pytest

from strop.recipes.objective.pacs import Pacs
from tests.building import make_batch, say, written


def gradient(rewards: list[float], beta: float, policy: list[float] | None = None) -> list[float]:
    """Gradient of the mean over rollouts of one token each, behaviour logprob -1."""
    count = len(rewards)
    batch, output = make_batch([[-1.0]] * count, rewards=rewards), say([[x] for x in policy or [-1.0] * count])
    value, _ = Pacs(beta)(output, batch)
    (batch.share * value).sum().backward()
    return written(batch, output.logprobs.grad)


def test_on_policy_gradients_by_hand() -> None:
    assert gradient([1.0, 0.0], 2.0) == pytest.approx([-1.0, 1.0])  # -0.5 beta, +0.5 beta
    assert gradient([1.0, 0.0, 0.0, 0.0], 1.0) == pytest.approx([-1 / 3, 1 / 9, 1 / 9, 1 / 9])


def test_both_labels_have_the_same_weight_off_policy() -> None:
    # q = (1, 0, 0, 0): psi = 1 and -1/3 for the others; weights 4 / 2 for the right one, 4 / 6 for each wrong one.
    batch = make_batch([[-1.0]] * 4, rewards=[1.0, 0.0, 0.0, 0.0])
    value, _ = Pacs()(say([[0.0], [-1.0], [-1.0], [-1.0]]), batch)
    assert written(batch, value) == pytest.approx([2 * log(1 + exp(-1)), *[2 / 3 * log(1 + exp(-1 / 3))] * 3])


def test_rounding_classifies_nothing() -> None:
    batch = make_batch([[-1.0]] * 2, rewards=[1.0, 0.0])
    for nudge, share in ((1e-5, 0.0), (1e-2, 1.0), (-1e-2, 0.0)):
        _, metrics = Pacs()(say([[-1.0 + nudge], [-1.0]]), batch)
        assert metrics["classified_right"] == share


def test_a_group_without_contrast_has_a_gradient_only_off_policy() -> None:
    assert gradient([1.0, 1.0], 1.0) == pytest.approx([0.0, 0.0])
    assert gradient([1.0, 1.0], 1.0, [-0.5, -1.0])[0] > 0  # the rollout that became likelier is pushed back


def test_the_loss_off_policy_and_of_whole_rollouts() -> None:
    # q = (1, 0): psi = (1, -1); both are classified right: log(1 + e^-1) each, on every token.
    batch = make_batch([[-1.0, -1.0], [-1.0]], rewards=[1.0, 0.0])
    value, metrics = Pacs()(say([[-0.5, -0.5], [-1.0]]), batch)
    assert written(batch, value) == pytest.approx([log(1 + exp(-1))] * 3)
    assert metrics["classified_right"] == pytest.approx(1.0)
