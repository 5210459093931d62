"""What one step minimizes: weights, shares and corrections together, and figures about the policy."""

from __future__ import annotations

from math import log

import pytest
import torch

from strop.train.losses.clip import Clip
from strop.train.losses.likelihood import Likelihood
from strop.train.objective import Objective
from tests.building import make_batch, say, written


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_a_teachers_token_has_the_policy_gradient_of_its_credit(advantage: float) -> None:
    # p = 0.3: taken for sampled with probability 1 its ratio would be 0.3 and its gradient 0.6, or 0 where clipped
    batch, output = make_batch([[0.0]], [advantage]), say([[log(0.3)]])
    batch.versions = torch.full_like(batch.versions, -1)
    value, figures = Objective((Clip(),))(output, batch)
    value.backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-advantage])
    assert figures["clipped_share"] == 0.0


def test_tokens_that_nobody_sampled_have_not_drifted() -> None:
    # One of two tokens was sampled, with half of its probability now: log-ratio log 2.
    batch, output = make_batch([[log(0.2), 0.0]]), say([[log(0.4), log(0.1)]])
    batch.versions = torch.tensor([-1, 0, -1])
    _, figures = Objective((Likelihood(),))(output, batch)
    assert figures["drift"] == pytest.approx(log(2) / 2)
    assert figures["ratio"] == pytest.approx((2 + 1) / 2)
    assert figures["kl_behavior"] == pytest.approx((2 - 1 - log(2)) / 2)
