"""ESRL's dynamic sampling (2308.02223): the attempts that the policy was surest of teach least, and are left out.

Readings: as released, u = 1 + mean of q * exp(q) over an attempt's tokens, which rises with confidence though it is
called an entropy there. q is the probability of the token that was sampled, not of the likeliest one, and the share is
left out of each group, not of a whole draw.
Papers: esrl
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Gate
from strop.types import Group, Metrics, Trajectory, Verdict

KEPT, LEFT = "confidence", "confidence_left"


@dataclass(frozen=True)
class LeastConfident(Gate):
    """Leave out the share `share` of a group's attempts, rounded up, with the largest u; of equals the last."""

    share: float = 0.3

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ConfigurationError(f"LeastConfident needs a share between 0 and 1, got {self.share}")

    def __call__(self, group: Group) -> Verdict:
        attempts = group.scored
        certain = [confidence(attempt) for attempt in attempts]
        out = math.ceil(self.share * len(attempts) - 1e-9)
        order = sorted(range(len(attempts)), key=lambda place: certain[place])
        kept, left = sorted(order[: len(attempts) - out]), order[len(attempts) - out :]
        if not kept:
            return Verdict(None, f"{len(attempts)} attempts count, and {self.share:.0%} of them are left out")
        told = {LEFT: float(np.mean([certain[place] for place in left]))}
        chosen = [replace(attempts[p], facts=attempts[p].facts | told | {KEPT: certain[p]}) for p in kept]
        return Verdict(replace(group, trajectories=chosen), f"left out the {out} surest of {len(attempts)} attempts")

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says by how much those left out were surer than those kept."""
        told = [t.facts for group in groups for t in group.trajectories if KEPT in t.facts]
        return {"confidence_gap": float(np.mean([f[LEFT] - f[KEPT] for f in told])) if told else 0.0}


def confidence(attempt: Trajectory) -> float:
    """1 + mean(q * exp(q)): 1 + e where nothing was left to chance; an attempt without tokens has left all to it."""
    chances = np.exp(np.concatenate([np.zeros(0), *(turn.logprobs for turn in attempt.turns)]).astype(np.float64))
    return 1 + float(np.mean(chances * np.exp(chances))) if len(chances) else 1.0
