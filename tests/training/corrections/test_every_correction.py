"""What must hold for all corrections: detached, finite, 1 on-policy, and no opinion about a teacher's tokens."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.errors import ConfigurationError
from strop.recipes.objective.missing_old_logits import MismatchMask
from strop.recipes.system.ring_1t import IcePop
from strop.roles import Correction
from strop.training.batch import Batch
from strop.training.corrections import importance_weights as by_ratio
from strop.training.corrections.geometric import Geometric
from tests.building import make_batch, say, written

CORRECTIONS: list[Correction] = [
    by_ratio.Truncated(),
    by_ratio.Masked(),
    by_ratio.Clamped(),
    by_ratio.SequenceTruncated(),
    by_ratio.SequenceMasked(),
    Geometric(),
    Geometric(inner=by_ratio.Truncated()),
    by_ratio.Veto(by_ratio.Truncated()),
    IcePop(),
    MismatchMask(),
]
every_correction = pytest.mark.parametrize("correction", CORRECTIONS, ids=repr)

ours = st.floats(-1000.0, 0.0)
theirs = st.one_of(st.floats(-1000.0, 0.0), st.just(-math.inf))
tokens = st.lists(st.tuples(ours, theirs, theirs), max_size=3)


def annotated(batch: Batch, old: torch.Tensor) -> Batch:
    batch.logprobs |= dict.fromkeys(("proximal", "old", "averaged"), old)
    return batch


@every_correction
@settings(max_examples=40, deadline=None)
@given(rollouts=st.tuples(tokens, tokens))
def test_is_finite_detached_and_never_negative(
    correction: Correction, rollouts: tuple[list[tuple[float, float, float]], ...]
) -> None:
    policy, behavior, old = ([[token[i] for token in rollout] for rollout in rollouts] for i in range(3))
    output = say(policy)
    weights = correction(output.logprobs, annotated(make_batch(behavior), say(old).logprobs))
    assert torch.isfinite(weights).all() and (weights >= 0).all()
    assert not weights.requires_grad


@every_correction
def test_same_policy_gives_ones_to_the_bit(correction: Correction) -> None:
    numbers = [[-0.3, -1.7], [-2.9]]
    batch = make_batch(numbers)
    annotated(batch, batch.behavior_logprobs.clone())
    assert written(batch, correction(say(numbers).logprobs, batch)) == [1.0, 1.0, 1.0]


@every_correction
def test_tokens_nobody_sampled_weigh_one(correction: Correction) -> None:
    batch = make_batch([[0.0, 0.0]])
    batch.versions = torch.full_like(batch.versions, -1)
    policy = say([[-4.0, -5.0]])
    assert written(batch, correction(policy.logprobs, annotated(batch, policy.logprobs))) == [1.0, 1.0]


@every_correction
def test_what_was_not_filled_is_named(correction: Correction) -> None:
    if correction.needs:
        with pytest.raises(ConfigurationError, match="no logprobs of old"):
            correction(say([[-1.0]]).logprobs, make_batch([[-1.0]]))
