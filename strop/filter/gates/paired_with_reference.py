"""AAPO's comparison (2505.14264): each attempt keeps the reward of the reference's attempt, which is then let go.

Papers: aapo
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.types import Group, Origin, Trajectory, Verdict


@dataclass(frozen=True)
class PairedWithReference(Gate):
    """Pair the policy's attempts with the reference's by their places; the fact `reference` is the partner's reward.

    All attempts of the reference are let go. One of the policy's whose partner does not count has no such fact, and
    stays for the mean and spread of its group.
    """

    def __call__(self, group: Group) -> Verdict:
        own = [attempt for attempt in group.trajectories if attempt.origin is not Origin.TEACHER]
        theirs = [attempt for attempt in group.trajectories if attempt.origin is Origin.TEACHER]
        known = {mine.id: other.reward for mine, other in zip(own, theirs, strict=False) if other.is_scored}
        kept = [_beside(mine, known.get(mine.id)) for mine in own if mine.is_scored]
        pairs = sum(mine.id in known for mine in kept)
        if not pairs:
            return Verdict(None, f"{len(own)} attempts of the policy and {len(theirs)} of the reference make no pair")
        reason = f"kept {len(kept)} attempts, {pairs} of them with the reference's reward"
        return Verdict(replace(group, trajectories=kept), reason)


def _beside(mine: Trajectory, reference: float | None) -> Trajectory:
    return mine if reference is None else replace(mine, facts=mine.facts | {"reference": reference})
