from __future__ import annotations

from math import log
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.objective.fpo import FeatureDpo
from strop.training.batch import Batch, Frozen
from tests.building import Said, make_batch, say, written

POLICY = [[-1.0, -2.0], [-0.5]]


def scene(states: Tensor, reference: Tensor, anchor: list[list[float]] = POLICY) -> tuple[Batch, Said]:
    """A chosen rollout of two tokens and a rejected one of one; states [3, H] of the written tokens."""
    share = [[1 / 4] * 2, [1 / 2]]
    batch = make_batch(POLICY, rewards=[1.0, 0.0], reference=anchor, share=share)
    batch.frozen = {"reference": Frozen(reference, lambda hidden: hidden)}
    output = say(POLICY)
    rows = batch.trainable.nonzero().squeeze(1)
    output.states = torch.zeros(len(batch.tokens), states.shape[1]).index_copy(0, rows, states)
    return batch, output


def test_at_the_reference_it_is_dpo_per_token() -> None:
    states = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    batch, output = scene(states, states.detach())
    value, metrics = FeatureDpo(beta=0.4)(output, batch)
    (batch.share * value).sum().backward()
    assert written(batch, value) == pytest.approx([log(2)] * 3) and metrics["feature_drift"] == 0.0
    assert written(batch, output.logprobs.grad) == pytest.approx([-0.1, -0.1, 0.2])  # -beta / (2 N_c)
    assert states.grad is not None and not states.grad.any()


def test_the_drift_by_hand_pulls_back_the_rejected_one_only() -> None:
    # Features pooled: chosen (1, 0) against (0, 0), rejected (2, 0) against (0, 0); with the top 1: D = 1 and 4.
    # The margin is beta * (0 - alpha * (4 - 1)) = -1.5 beta: L = log(1 + exp(0.15)).
    states = torch.tensor([[2.0, 0.0], [0.0, 0.0], [2.0, 0.0]], requires_grad=True)
    batch, output = scene(states, torch.zeros(3, 2))
    value, metrics = FeatureDpo(top=1)(output, batch)
    (batch.share * value).sum().backward()
    assert float(value.detach().max()) == pytest.approx(log(1 + 1.1618342), rel=1e-6)
    assert metrics["margin"] == pytest.approx(-0.15)
    assert states.grad is not None
    assert not states.grad[:2].any() and float(states.grad[2, 0]) > 0  # a step down brings it nearer


def test_alpha_0_is_dpo_divided_by_length() -> None:
    batch, output = scene(torch.rand(3, 4), torch.rand(3, 4), [[-2.0, -2.0], [-1.5]])
    value, metrics = FeatureDpo(beta=1.0, alpha=0.0)(output, batch)
    assert metrics["margin"] == pytest.approx(0.5 - 1.0)  # mean gain (1 + 0) / 2 against 1
    assert float(value.detach().max()) == pytest.approx(log(1 + 1.6487213), rel=1e-6)


def test_a_sparse_autoencoder_from_a_file(tmp_path: Path) -> None:
    save_file({"encoder": torch.tensor([[0.0, 1.0], [0.0, 0.0]]), "bias": torch.tensor([0.0, -1.0])}, tmp_path / "sae")
    states = torch.tensor([[1.0, 5.0], [3.0, 5.0], [0.5, 5.0]])
    batch, output = scene(states, torch.zeros(3, 2))
    _, metrics = FeatureDpo(top=1, features=str(tmp_path / "sae"))(output, batch)
    # Feature 1 is relu(x - 1) = 0, 2, 0, pooled 1 and 0. The zeros of the reference make feature 0 its strongest, so
    # the union has two; the divisor is `top` all the same: D = 1 for the chosen rollout, whose tokens have half of the
    # shares.
    assert metrics["feature_drift"] == pytest.approx(0.5)


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="states of the reference"):
        FeatureDpo()(say(POLICY), make_batch(POLICY, reference=POLICY))
