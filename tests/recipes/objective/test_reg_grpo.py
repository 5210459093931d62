"""Reg-GRPO (strop.recipes.objective.reg_grpo): a loss in the correlation of log-ratios and advantages."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.objective.reg_grpo import RegGrpo
from strop.training.batch import Batch
from tests.building import Said, make_batch, say

SHARE = [[1 / 3], [1 / 3], [1 / 3]]


def loss_of(log_ratios: list[float], floor: float = 0.1) -> tuple[float, Said, Batch]:
    """Advantages (-1, 0, 1), one token each, and the given log-ratios."""
    behavior = [[-1.0]] * 3
    batch = make_batch(behavior, advantages=[-1.0, 0.0, 1.0], share=SHARE)
    output = say([[-1.0 + p] for p in log_ratios])
    per_token, _ = RegGrpo(floor)(output, batch)
    total = (batch.share * per_token).sum()
    torch.autograd.backward(total)
    return float(total.detach()), output, batch


@pytest.mark.parametrize(
    ("log_ratios", "expected"), [([-0.2, 0, 0.2], 0.0), ([0.2, 0, -0.2], 8 / 3), ([0, 0, 0], 2 / 3)]
)
def test_the_loss_by_hand(log_ratios: list[float], expected: float) -> None:
    assert loss_of(log_ratios)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("scale", [1.0, 3.0, 20.0])
def test_scale_and_offset_of_the_log_ratios_do_not_matter(scale: float) -> None:
    log_ratios = np.array([-0.3, 0.5, 0.1])
    expected = 2 * 2 / 3 * (1 - float(np.corrcoef(log_ratios, [-1, 0, 1])[0, 1]))
    assert loss_of((scale * log_ratios + 0.7).tolist())[0] == pytest.approx(expected)


def test_above_the_floor_the_gradient_keeps_the_scale_of_the_log_ratios() -> None:
    """Log-ratios (-0.9, 1.5, 0.3): centred (-1.2, 1.2, 0), deviation 1.2, normalized (-1, 1, 0).

    d loss / d p = -2/3 / 1.2 * (A minus its projection on the normalized log-ratios and the mean) = (5, 5, -10) / 18.
    """
    _, output, batch = loss_of([-0.9, 1.5, 0.3])
    assert output.logprobs.grad is not None
    found = output.logprobs.grad[batch.trainable].tolist()
    assert found == pytest.approx([5 / 18, 5 / 18, -10 / 18])
    assert sum(slope * value for slope, value in zip(found, (-1.2, 1.2, 0.0), strict=True)) == pytest.approx(
        0, abs=1e-9
    )


def test_on_the_first_step_it_is_a_policy_gradient_with_a_finite_size() -> None:
    """p = 0: d loss / d p_i = -2 A_i / (3 * floor), for centred A."""
    _, output, batch = loss_of([0.0, 0.0, 0.0], floor=0.5)
    assert output.logprobs.grad is not None
    assert output.logprobs.grad[batch.trainable].tolist() == pytest.approx([4 / 3, 0.0, -4 / 3])


def test_a_group_without_contrast_has_no_gradient() -> None:
    batch = make_batch([[-1.0]] * 2, advantages=[0.0, 0.0])
    output = say([[-1.0]] * 2)
    per_token, _ = RegGrpo()(output, batch)
    torch.autograd.backward(per_token.sum())
    assert output.logprobs.grad is not None and float(output.logprobs.grad.abs().sum()) == 0
    with pytest.raises(ConfigurationError, match="floor > 0"):
        RegGrpo(floor=0.0)
