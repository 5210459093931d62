from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.system.ring_1t import IcePop
from strop.training.losses.clip import Clip
from tests.building import lay_out, make_batch, say, written

GAPS = [0.4, 0.5, 1.0, 5.0, 5.1]


@pytest.mark.parametrize("target", ["old", "proximal"])
def test_tokens_are_weighted_inside_the_band_and_masked_outside(target: str) -> None:
    batch = make_batch([[0.0] * 5])
    batch.fill(target, lay_out([[log(gap) for gap in GAPS]], float("nan")))
    weights = IcePop(target=target)(say([[-3.0] * 5]).logprobs, batch)
    assert written(batch, weights) == pytest.approx([0.0, 0.5, 1.0, 5.0, 0.0])


def test_a_masked_token_has_no_gradient_and_stays_in_the_denominator() -> None:
    batch = make_batch([[0.0] * 5])
    batch.fill("old", lay_out([[log(gap) for gap in GAPS]], float("nan")))
    output = say([[log(gap) for gap in GAPS]])  # r = 1
    loss, _ = Clip(anchor="old")(output, batch)
    (batch.share * IcePop()(output.logprobs, batch) * loss).sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, -0.1, -0.2, -1.0, 0.0])  # -M / 5


def test_equal_engines_leave_grpo() -> None:
    policy, old = [[-0.5, -1.0, -2.0]], [[-0.9, -1.1, -0.3]]
    batch = make_batch(old, [1.5])
    batch.fill("old", batch.behavior_logprobs.clone())
    output = say(policy)
    weighed = IcePop()(output.logprobs, batch) * Clip(anchor="old")(output, batch)[0]
    assert torch.equal(weighed, Clip()(output, batch)[0])


def test_the_current_policy_is_no_target() -> None:
    with pytest.raises(ConfigurationError, match="has no policy 'current'"):
        IcePop(target="current")
