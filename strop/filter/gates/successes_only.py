"""Rejection sampling filter of expert iteration (Havrilla et al., 2403.04642): only successful rollouts are kept.

Keeping successes over several rounds and removing duplicates is left to a buffer.

Papers: expert-iteration
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.success import is_right
from strop.types import GateResult, Group


@dataclass(frozen=True)
class Successes(Gate):
    """Gate that keeps rollouts whose total reward reaches the threshold, and drops a group without any."""

    threshold: float = 1.0  # least reward of a success

    def __call__(self, group: Group) -> GateResult:
        # A weighted sum such as 0.7 + 0.2 + 0.1 is a rounding error short of 1.
        kept = [rollout for rollout in group.scored if is_right(rollout.reward, self.threshold)]
        if not kept:
            return GateResult(None, f"no reward reaches {self.threshold:g}")
        reason = f"kept {len(kept)} of {len(group.rollouts)} rollouts"
        return GateResult(replace(group, rollouts=kept), reason)
