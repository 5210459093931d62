from __future__ import annotations

import math

import pytest
import torch

from strop.errors import ConfigurationError
from strop.training.step_scales.effective_sample_size import EffectiveSampleSize


def scale(weights: list[float], **settings: float) -> float:
    return EffectiveSampleSize(**settings)(torch.tensor(weights).log())


def test_hand_worked_factors() -> None:
    assert scale([4.0, 0.0, 0.0, 0.0]) == pytest.approx(0.5)  # share 1/4
    assert scale([4.0, 0.0, 0.0, 0.0], power=1.0) == pytest.approx(0.25)
    assert scale([1.0, 1.0, 1.0, 1.0]) == pytest.approx(1.0, abs=1e-12)
    assert scale([0.01] * 4) == pytest.approx(1.0, abs=1e-12)  # all equally stale: the share cannot see it
    assert scale([2.0, 1.0]) == pytest.approx(math.sqrt(0.9))  # 9 / (2 * 5)
    assert scale([2.0, 1.0], full=0.55) == 1.0


def test_never_above_one_and_finite_for_products_that_overflow() -> None:
    log_weights = torch.tensor([3000.0, -3000.0, 0.0])
    assert EffectiveSampleSize()(log_weights) == pytest.approx(math.sqrt(1 / 3))
    assert EffectiveSampleSize()(torch.full((7,), 1234.5)) <= 1.0


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 < full <= 1, got 0"):
        EffectiveSampleSize(full=0.0)
