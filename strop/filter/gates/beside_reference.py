"""AAPO's comparison (2505.14264): each attempt keeps the reward of the reference's attempt, which is then let go.

Papers: aapo
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.types import Group, Origin, Verdict


@dataclass(frozen=True)
class BesideReference(Gate):
    """Pair the policy's attempts with the reference's in order; `rewards["reference"]` is the partner's reward.

    An attempt without a partner that counts is left out, as are all attempts of the reference.
    """

    def __call__(self, group: Group) -> Verdict:
        own = [attempt for attempt in group.scored if attempt.origin is not Origin.TEACHER]
        theirs = [attempt for attempt in group.scored if attempt.origin is Origin.TEACHER]
        pairs = list(zip(own, theirs, strict=False))
        if not pairs:
            return Verdict(None, f"{len(own)} attempts of the policy and {len(theirs)} of the reference make no pair")
        kept = [replace(mine, rewards=mine.rewards | {"reference": other.reward}) for mine, other in pairs]
        return Verdict(replace(group, trajectories=kept), f"kept {len(kept)} attempts with the reference's rewards")
