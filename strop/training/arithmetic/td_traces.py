"""TD(lambda) advantages along a rollout, a KL penalty per token, and whitening over a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.training.requirements import LOGPROBS, REFERENCE_LOGPROBS
from strop.types import Rollout

KL_STATISTICS = frozenset({LOGPROBS, REFERENCE_LOGPROBS})  # statistics that a KL penalty reads


def traced(
    paid: NDArray[np.float64], values: NDArray[np.float64], end: float, discount: float, trace: float
) -> NDArray[np.float64]:
    """A_t = delta_t + discount * trace * A_(t+1), delta_t = paid_t + discount * V_(t+1) - V_t, `end` after the last."""
    advantage: NDArray[np.float64] = paid + discount * np.append(values[1:], end)[: len(values)] - values
    for t in reversed(range(len(advantage) - 1)):
        advantage[t] += discount * trace * advantage[t + 1]
    return advantage


def kl_payments(rollout: Rollout, weight: float) -> NDArray[np.float64]:
    """-weight * log(policy / reference) of each written token: [N]."""
    if not weight or not rollout.num_tokens:
        return np.zeros(rollout.num_tokens)
    policy, reference = (
        policy_statistic.of(rollout).astype(np.float64) for policy_statistic in (LOGPROBS, REFERENCE_LOGPROBS)
    )
    return -weight * np.nan_to_num(policy - reference).clip(-20, 20)


def whitened(arrays: Sequence[NDArray[np.float64]], epsilon: float = 0.0) -> list[NDArray[np.float64]]:
    """(x - mean) / (std + epsilon) over all of them, population std; equal numbers are exactly 0."""
    together = np.concatenate([*arrays, np.zeros(0)])
    origin = together[:1].copy()
    if not len(together) or not np.ptp(together):
        return [np.zeros_like(each) for each in arrays]
    centre, spread = (together - origin).mean(), (together - origin).std()
    return [(each - origin - centre) / (spread + epsilon) for each in arrays]
