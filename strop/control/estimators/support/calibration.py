"""How well success was foreseen: what every belief says of itself after a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.success import successes
from strop.types import Group, Metrics


def errors(foreseen: NDArray[Any], came: NDArray[Any]) -> Metrics:
    """Mean squared error, bias, and how far the foreseen differ from each other."""
    if not len(came):
        return {"belief_loss": 0.0, "belief_bias": 0.0, "belief_spread": 0.0}
    gap = foreseen.astype(np.float64) - came
    return {
        "belief_loss": float(np.square(gap).mean()),
        "belief_bias": float(gap.mean()),
        "belief_spread": float(foreseen.astype(np.float64).std()),
    }


def foresight(groups: Sequence[Group]) -> Metrics:
    """Of `foreseen` against the share of right attempts, where there were any."""
    known = [(group.foreseen[0], *successes(group)) for group in groups if group.foreseen is not None and group.own]
    means, right, count = np.array(known).reshape(-1, 3).T
    return errors(means, right / count)
