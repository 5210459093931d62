"""How unevenly the rollouts of a group ended, as the size of their advantages says it."""

from __future__ import annotations

import numpy as np

from strop.control.seeded_choice import Doubles
from strop.success import success
from strop.types import Group

_ROUNDING = 1e-9


def contrasts(group: Group) -> Doubles:
    """|A| of each of the policy's own rollouts, A = (outcome - mean) / spread; 0 where all ended alike: [G].

    The spread is that of these rollouts alone and not an estimate beyond them: where the share p was right the mean is
    2 sqrt(p (1 - p)), in groups of any size. What is paid beside the environment's outcome changes nothing.
    """
    outcomes = np.array([success(rollout) for rollout in group.own], dtype=np.float64)
    if not len(outcomes) or float(np.ptp(outcomes)) <= _ROUNDING:
        return np.zeros(len(outcomes))
    return np.asarray(np.abs(outcomes - outcomes.mean()) / outcomes.std())
