"""Learn from right attempts alone, or from wrong ones alone (2506.01347): the other side never reaches the loss.

Papers: nsr-psr
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.roles import Gate
from strop.success import ROUNDING
from strop.types import Group, Verdict

_REWARD = {"right": 1.0, "wrong": 0.0}


@dataclass(frozen=True)
class OneSided(Gate):
    """Keep the attempts whose total reward is 1 (`right`) or 0 (`wrong`); drop the group if there is none."""

    side: str  # right or wrong: which attempts stay

    def __post_init__(self) -> None:
        if self.side not in _REWARD:
            raise ConfigurationError(f"OneSided needs side right or wrong, got {self.side!r}")

    def __call__(self, group: Group) -> Verdict:
        kept = [attempt for attempt in group.scored if abs(attempt.reward - _REWARD[self.side]) <= ROUNDING]
        if not kept:
            return Verdict(None, f"no attempt is {self.side}")
        return Verdict(replace(group, trajectories=kept), f"kept {len(kept)} of {len(group.trajectories)} attempts")
