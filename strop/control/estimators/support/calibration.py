"""Calibration metrics of pass-rate estimators: predicted against observed success after each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.success import successes
from strop.types import Group, Metrics


def errors(predicted: NDArray[Any], came: NDArray[Any]) -> Metrics:
    """Mean squared error, bias, and how far the predicted differ from each other."""
    if not len(came):
        return {"estimator_loss": 0.0, "estimator_bias": 0.0, "estimator_spread": 0.0}
    gap = predicted.astype(np.float64) - came
    return {
        "estimator_loss": float(np.square(gap).mean()),
        "estimator_bias": float(gap.mean()),
        "estimator_spread": float(predicted.astype(np.float64).std()),
    }


def prediction(groups: Sequence[Group]) -> Metrics:
    """Of `predicted` against the share of right rollouts, where the success of any is known."""
    seen = [(group.predicted[0], *successes(group)) for group in groups if group.predicted is not None]
    means, right, count = np.array([row for row in seen if row[2]]).reshape(-1, 3).T
    return errors(means, right / count)
