"""Rejection sampling filter of expert iteration (Havrilla et al., 2403.04642): only successful rollouts are kept.

Keeping successes over several rounds and removing duplicates is left to a buffer.

Papers: expert-iteration
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.roles import Gate
from strop.success import is_right
from strop.types import GateResult, Group


@dataclass(frozen=True)
class Successes(Gate):
    """Gate that keeps rollouts whose success reaches the threshold, and drops a group without any."""

    threshold: float = 1.0  # least success of a kept rollout

    needs_success: ClassVar[bool] = True

    def __call__(self, group: Group) -> GateResult:
        kept = [rollout for rollout in group.scored if is_right(rollout, self.threshold)]
        if not kept:
            return GateResult(None, f"no success reaches {self.threshold:g}")
        reason = f"kept {len(kept)} of {len(group.rollouts)} rollouts"
        return GateResult(replace(group, rollouts=kept), reason)
