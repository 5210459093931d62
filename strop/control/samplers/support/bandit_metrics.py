"""What a run is told of a choice between arms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strop.control.seeded_choice import Doubles
from strop.roles import Environment
from strop.types import Metrics


def preference(probabilities: Doubles) -> float:
    """How far a choice is from an even one: the share of draws that would have to go elsewhere; 0 where it is even."""
    return float(np.abs(probabilities - 1 / len(probabilities)).sum() / 2)


def arm_metrics(envs: Sequence[Environment], probabilities: Doubles) -> Metrics:
    """The probability of each environment, and how far they are from even."""
    each = {f"probability/{env.name}:{env.level}": float(p) for env, p in zip(envs, probabilities, strict=True)}
    return {"preference": preference(probabilities), **each}
