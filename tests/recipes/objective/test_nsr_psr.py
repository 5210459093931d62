"""Positive and negative reinforcement (strop.recipes.objective.nsr_psr) by hand."""

from __future__ import annotations

import pytest
import torch

from strop.errors import ConfigurationError
from strop.evaluation import pass_at_k
from strop.recipes.objective.nsr_psr import OneSided, Signed
from strop.training.losses.clip import Clip
from strop.training.reductions.means import TokenMean
from tests.building import Said, advantages_of, make_batch, make_group


def test_right_wrong_and_neither() -> None:
    group = make_group([1.0, 0.0, 0.5, 1.0])
    Signed()([group])
    assert advantages_of(group) == pytest.approx([0.1, -1.0, 0.0, 0.1])


@pytest.mark.parametrize(
    ("reward", "expected"), [(0.0, [0.5, -0.3, -0.2]), (1.0, [-0.05, 0.03, 0.02])], ids=["wrong", "right"]
)
def test_the_other_tokens_change_in_proportion_to_their_probabilities(reward: float, expected: list[float]) -> None:
    # pi = (.5, .3, .2), token 0 sampled: d loss / d logits = -A * (onehot - pi)
    group = make_group([reward])
    Signed()([group])
    logits = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log().requires_grad_()
    logprob = logits.log_softmax(0)[0]
    advantage = [value for value in advantages_of(group) if value is not None]
    batch = make_batch([[float(logprob.detach())]], advantage)
    packed = torch.stack([logprob.new_zeros(()), logprob])
    loss, _ = Clip()(Said(packed, torch.zeros_like(packed)), batch)
    (gradient,) = torch.autograd.grad((batch.share * loss).sum(), logits)
    assert gradient.tolist() == pytest.approx(expected, abs=1e-7)


def test_the_other_side_leaves_the_denominator() -> None:
    group = make_group([1.0, 0.0, 0.0, 0.5], lengths=[5, 2, 1, 7])
    kept = OneSided("wrong")(group).group
    assert kept is not None and [rollout.id for rollout in kept.rollouts] == ["0-1", "0-2"]
    assert TokenMean()([kept])["0-1"].tolist() == pytest.approx([1 / 3] * 2)
    right = OneSided("right")(group).group
    assert right is not None and [rollout.id for rollout in right.rollouts] == ["0-0"]
    assert OneSided("wrong")(make_group([1.0, 1.0])).group is None


def test_another_side_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="right or wrong, got 'left'"):
        OneSided("left")


def test_pass_at_k_by_hand() -> None:
    assert pass_at_k(4, 1, 2) == 0.5
