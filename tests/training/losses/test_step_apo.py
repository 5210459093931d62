"""Step-APO by hand: DPO at a margin of 0, DPO shifted by alpha / beta * margin otherwise."""

from __future__ import annotations

from math import exp, log

import pytest

from strop.training.losses.preference_pairs import Dpo
from tests.building import make_batch, say, written

REFERENCE = [[-1.0, -1.0], [-2.0]]


def test_loss_and_gradient_by_hand() -> None:
    """h = 0.2 + 0.3 + 0.5 = 1, margin 0.3 * 1 - (0.75 + 0.25) = -0.7: log(1 + e^0.7), slope 1 / (1 + e^-0.7)."""
    batch = make_batch([[-1.0, -1.0], [-2.0]], rewards=[0.75, -0.25], reference=REFERENCE)
    output = say([[-0.8, -0.7], [-2.5]])
    loss, metrics = Dpo(0.3, apart=1.0)(output, batch)
    assert written(batch, loss) == pytest.approx([log(1 + exp(0.7))] * 3)
    assert metrics["margin"] == pytest.approx(-0.7) and metrics["reward_margin"] == pytest.approx(1.0)
    loss[batch.trainable][:1].sum().backward()  # one token carries the whole loss of the pair
    slope = 0.3 / (1 + exp(-0.7))
    assert written(batch, output.logprobs.grad) == pytest.approx([-slope, -slope, slope])


def test_it_is_dpo_shifted_by_the_margin() -> None:
    """At the difference d and the margin m as DPO at d - (alpha / beta) m; so it is DPO where alpha is 0."""
    batch = make_batch([[-1.0, -1.0], [-2.0]], rewards=[0.6, 0.2], reference=REFERENCE)
    plain, _ = Dpo(0.3)(say([[-0.8, -0.7], [-2.5]]), batch)
    free, _ = Dpo(0.3, apart=0.0)(say([[-0.8, -0.7], [-2.5]]), batch)
    assert written(batch, free) == pytest.approx(written(batch, plain))
    shift = 1.0 / 0.3 * 0.4
    shifted, _ = Dpo(0.3)(say([[-0.8, -0.7], [-2.5 + shift]]), batch)
    held, _ = Dpo(0.3, apart=1.0)(say([[-0.8, -0.7], [-2.5]]), batch)
    assert written(batch, held) == pytest.approx(written(batch, shifted))


def test_a_tie_has_no_gradient() -> None:
    batch = make_batch([[-1.0], [-2.0]], rewards=[0.5, 0.5], reference=[[-1.0], [-2.0]])
    output = say([[-0.5], [-2.5]])
    loss, metrics = Dpo(0.3, apart=1.0)(output, batch)
    loss.sum().backward()
    assert written(batch, output.logprobs.grad) == [0.0, 0.0] and metrics["reward_margin"] == 0.0
