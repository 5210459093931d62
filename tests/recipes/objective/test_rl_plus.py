from __future__ import annotations

from math import log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.objective.rl_plus import RlPlus
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from tests.building import make_batch, say, written


def scene(probability: float, advantage: float = 1.0) -> Batch:
    """One external token with this probability under the old policy."""
    batch = make_batch([[0.0]], [advantage])
    batch.versions = torch.full_like(batch.versions, -1)
    batch.fill("proximal", torch.full_like(batch.share, log(probability)))
    return batch


@pytest.mark.parametrize(
    ("probability", "guess", "weight"),
    [(0.5, 1.0, 0.5656854), (0.1, 1.0, 0.2919026), (0.01, 1.0, 0.03864), (0.01, 0.01, 0.995), (1.0, 1.0, 0.0)],
)
def test_the_weight_of_an_external_token_by_hand(probability: float, guess: float, weight: float) -> None:
    """The release's guess of 1 gives rare tokens almost no gradient; the paper's uniform one does."""
    output, batch = say([[log(probability)]]), scene(probability, 2.0)
    RlPlus(guess)(output, batch)[0].sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-2.0 * weight], rel=1e-3, abs=1e-9)


def test_without_a_guess_the_behaviour_policy_is_uniform() -> None:
    # Four tokens in the vocabulary, p = 0.1: 2 p / (1.5 p + 0.5 / 4) * sqrt(0.9) = 8/11 * 0.9486833
    output, batch = say([[log(0.1)]]), scene(0.1)
    output.logits, output.tokens = torch.zeros(2, 4, dtype=torch.float64), batch.tokens
    RlPlus()(output, batch)[0].sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-8 / 11 * 0.9486833])


def test_without_external_rollouts_it_is_the_unclipped_ratio() -> None:
    batch = make_batch([[-1.0, -2.0], [-0.5]], [1.0, -1.0])
    batch.fill("proximal", torch.full_like(batch.share, float("nan")))
    ours, theirs = say([[-0.4, -2.5], [-0.1]]), say([[-0.4, -2.5], [-0.1]])
    RlPlus(1.0)(ours, batch)[0].sum().backward()
    Clip(low=1.0, high=1e9)(theirs, batch)[0].sum().backward()
    assert written(batch, ours.logprobs.grad) == pytest.approx(written(batch, theirs.logprobs.grad))


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 < guess <= 1, a probability, got 0"):
        RlPlus(0.0)
    with pytest.raises(ConfigurationError, match="proximal"):
        RlPlus()(say([[0.0]]), make_batch([[0.0]]))
