from __future__ import annotations

import math

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.agent.webrl import AdvantageRegression
from tests.building import Said, make_batch, say, written

HALF, QUARTER = math.log(0.5), math.log(0.25)


def test_by_hand() -> None:
    """d = (log 2 + 0) / 2, A = 0.5, beta = 2: error log 2 - 0.5; d loss / d logp of each token = 2 error beta / 2."""
    output = say([[HALF, HALF]])
    batch = make_batch([[HALF, HALF]], advantages=[0.5], reference=[[QUARTER, HALF]], share=[[0.5, 0.5]])
    loss, metrics = AdvantageRegression(beta=2.0)(output, batch)
    error = math.log(2) - 0.5
    assert written(batch, loss) == pytest.approx([error**2] * 2)
    (loss * batch.share).sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([2 * error] * 2)
    assert metrics == pytest.approx({"regression_error": error**2, "moved": math.log(2) / 2})


def test_each_turn_is_regressed_onto_its_own_advantage() -> None:
    """Log-ratios (.1 .05 | .3) and (-.2), advantage .5, -1 and 1, beta 2: errors .15 - .5, .6 + 1 and -.4 - 1."""
    batch = make_batch([[-1.0] * 4, [-1.0]], reference=[[-1.0] * 4, [-1.0]])
    batch.trainable = batch.trainable & (torch.arange(7) != 3)  # what was read between two turns
    batch.advantages = torch.tensor([0, 0.5, 0.5, 0, -1, 0, 1], dtype=torch.float64)
    output = say([[-0.9, -0.95, 7.0, -0.7], [-1.2]])
    loss, metrics = AdvantageRegression(beta=2.0)(output, batch)
    assert written(batch, loss) == pytest.approx([0.1225, 0.1225, 2.56, 1.96])
    loss.sum().backward()  # both tokens of the first turn carry its loss, and both move it
    assert written(batch, output.logprobs.grad) == pytest.approx([-1.4, -1.4, 6.4, -5.6])
    assert metrics["moved"] == pytest.approx((0.075 * 2 + 0.3 + 0.2) / 5)


def test_its_optimum_is_the_reference_tilted_by_the_advantage() -> None:
    """One token of three: at policy = reference * exp((A - c) / beta) / 1 every token's error is the same constant.

    With advantages A - beta * log sum(reference * exp(A / beta)) it is 0, and so is the gradient.
    """
    reference = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
    raw, beta = torch.tensor([1.0, -1.0, 0.25], dtype=torch.float64), 0.7
    normaliser = beta * torch.logsumexp(reference + raw / beta, 0)
    best = (reference + raw / beta).log_softmax(0)
    for token in range(3):
        logprobs = torch.tensor([0.0, float(best[token])], dtype=torch.float64, requires_grad=True)
        batch = make_batch([[0.0]], advantages=[float(raw[token] - normaliser)], reference=[[float(reference[token])]])
        loss, _ = AdvantageRegression(beta)(Said(logprobs, torch.zeros(2)), batch)
        assert float(loss.detach().sum()) == pytest.approx(0.0, abs=1e-12)


def test_rollouts_are_separate_and_a_reference_is_needed() -> None:
    batch = make_batch([[HALF], [HALF]], advantages=[1.0, -1.0], reference=[[HALF], [HALF]])
    loss, _ = AdvantageRegression()(say([[HALF], [HALF]]), batch)
    assert written(batch, loss) == pytest.approx([1.0, 1.0])
    with pytest.raises(ConfigurationError, match="reference"):
        AdvantageRegression()(say([[HALF]]), make_batch([[HALF]]))
    with pytest.raises(ConfigurationError, match="beta > 0, got 0"):
        AdvantageRegression(0)
