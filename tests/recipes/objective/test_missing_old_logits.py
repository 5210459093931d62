"""policy / behaviour = mismatch * staleness, for every middle policy; clip and mask each act on one of them."""

from __future__ import annotations

from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.errors import ConfigurationError
from strop.recipes.objective.missing_old_logits import MismatchMask
from strop.training.arithmetic.ratios import log_weights, with_sampler
from strop.training.losses.clip import Clip
from tests.building import lay_out, make_batch, say, written

logprob = st.floats(-9.0, 0.0)


@settings(max_examples=50, deadline=None)
@given(tokens=st.lists(st.tuples(logprob, logprob, logprob), min_size=1, max_size=6))
@pytest.mark.parametrize("middle", ["proximal", "old", "averaged"])
def test_the_total_ratio_is_mismatch_times_staleness(middle: str, tokens: list[tuple[float, float, float]]) -> None:
    behavior, between, policy = ([[token[i] for token in tokens]] for i in range(3))
    batch = make_batch(behavior)
    batch.fill(middle, lay_out(between, float("nan")))
    current = say(policy).logprobs
    mismatch = log_weights(middle, batch, current)
    staleness = batch.log_ratio(current, lay_out(between, float("nan")))
    total = log_weights("current", batch, current)
    torch.testing.assert_close(mismatch + staleness, total, rtol=0, atol=1e-14)


@pytest.mark.parametrize("target", ["old", "averaged"])
def test_mask_by_mismatch_clip_by_staleness(target: str) -> None:
    # mismatch (1, 1.5, 2.5, 0.4, 0.6), limit 2; staleness (1.5, 1.1, 1, 1, 1), clip 0.2, A = 1.
    behavior, old = [0.1] * 5, [0.1, 0.15, 0.25, 0.04, 0.06]
    policy = [0.15, 0.165, 0.25, 0.04, 0.06]
    batch = make_batch([[log(p) for p in behavior]])
    batch.fill(target, lay_out([[log(p) for p in old]], float("nan")))
    output = say([[log(p) for p in policy]])
    weights = MismatchMask(2.0, target)(output.logprobs, batch)
    assert written(batch, weights) == pytest.approx([1.0, 1.5, 0.0, 0.0, 0.6])
    (weights * Clip(anchor=target)(output, batch)[0]).sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, -1.5 * 1.1, 0.0, 0.0, -0.6])


def test_misuse_is_refused() -> None:
    assert MismatchMask(limit=1.0).limit == 1.0
    with pytest.raises(ConfigurationError, match="limit >= 1"):
        MismatchMask(limit=0.5)
    with pytest.raises(ConfigurationError, match="has no policy 'proximal'"):
        MismatchMask(target="proximal")


def test_a_teachers_token_has_ratio_1_and_a_gradient() -> None:
    """The second token is a teacher's: ratio 1 with the gradient of log policy; the first one's ratio is 0.3 / 0.2."""
    batch = make_batch([[log(0.2), 0.0]])
    batch.versions[2] = -1
    output = say([[log(0.3), log(0.4)]])
    ratio = batch.log_ratio(output.logprobs, with_sampler(batch, output.logprobs).behavior_logprobs).exp()
    assert written(batch, ratio) == pytest.approx([1.5, 1.0])
    ratio.sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([1.5, 1.0])
