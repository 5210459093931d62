from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.recipes.distill.language_irl import InverseSoftQ
from strop.training.batch import Batch
from tests.building import Said, make_batch, written


def scene(logits: Tensor, tokens: list[list[int]], temperature: float = 1.0) -> tuple[Batch, Said]:
    """Rows of raw logits for each written token; an output gives them divided by the temperature."""
    batch = make_batch([[0.0] * len(each) for each in tokens])
    batch.tokens = torch.tensor([token for each in tokens for token in (0, *each)])
    batch.temperature = torch.full_like(batch.share, temperature)
    rows = batch.trainable.nonzero().squeeze(1)
    own = torch.zeros(len(batch.tokens), logits.shape[1], dtype=torch.float64).index_copy(0, rows, logits / temperature)
    nothing = torch.zeros(len(batch.tokens), dtype=torch.float64)
    return batch, Said(nothing, nothing, own, batch.tokens)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_by_hand_with_the_whole_gradient(temperature: float) -> None:
    # Two steps of Q = (0, 0): V = log 2. r_1 = 0 - log 2, r_2 = 0. L = 2 log 2 + 0.5 * log(2)^2.
    logits = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    batch, output = scene(logits, [[0, 1]], temperature)
    value, metrics = InverseSoftQ(0.5)(output, batch)
    value.sum().backward()
    log2 = 0.6931472
    assert written(batch, value) == pytest.approx([log2 + 0.5 * log2**2, log2])
    assert metrics["implied_reward"] == pytest.approx(-log2 / 2)
    # d/dQ(s_1, .): imitation (-.5, .5), penalty 2 * .5 * -log 2 on token 0; d/dQ(s_2, .): imitation (.5, -.5) and
    # through V(s_2) 2 * .5 * -log 2 * -(.5, .5)
    expected = torch.tensor([[-0.5 - log2, 0.5], [0.5 + log2 / 2, -0.5 + log2 / 2]], dtype=torch.float64)
    torch.testing.assert_close(logits.grad, expected, rtol=0, atol=1e-6)


def test_without_a_penalty_it_is_the_cross_entropy() -> None:
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch, output = scene(logits, [[1, 3], [2]])
    value, _ = InverseSoftQ(0.0)(output, batch)
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([1, 3, 2]), reduction="none")
    assert written(batch, value) == pytest.approx(expected.tolist())


def test_the_optimum_of_one_step_by_hand() -> None:
    """Demonstrations (.75, .25), penalty .5: Q = (0.145109, -0.435328); the mean implied reward is 0."""
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-14)

    def closure() -> Tensor:
        optimizer.zero_grad()
        batch, output = scene(torch.stack([logits, logits]), [[0], [1]])
        value, _ = InverseSoftQ(0.5)(output, batch)
        total = 0.75 * value[1] + 0.25 * value[3]
        total.backward()
        return total

    optimizer.step(closure)
    assert logits.tolist() == pytest.approx([0.145109, -0.435328], abs=1e-5)
    assert float(logits.detach().softmax(0)[0]) == pytest.approx(0.641168, abs=1e-5)
