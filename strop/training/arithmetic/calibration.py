"""Calibration metrics of a value model, reported after every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.types import Metrics


def calibration(values: NDArray[Any], returns: NDArray[Any]) -> Metrics:
    """Mean squared error, bias, and explained variance: 1 when exactly predicted, 0 when no better than their mean."""
    if not len(returns):
        return {"value_loss": 0.0, "value_bias": 0.0, "explained_variance": 0.0}
    error = returns.astype(np.float64) - values
    spread = float(returns.astype(np.float64).var())
    return {
        "value_loss": float(np.square(error).mean()),
        "value_bias": -float(error.mean()),
        "explained_variance": 1 - float(error.var()) / spread if spread > 0 else 0.0,
    }
