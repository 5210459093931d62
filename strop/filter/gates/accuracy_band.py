"""Online difficulty filtering (2504.03380): only groups of medium pass rate are kept.

The pipeline generates replacements for dropped groups. At equal tokens that alone gains nothing, because a group
without contrast has no gradient anyway; what changes is the size of each training batch.

Papers: odf
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Gate
from strop.success import successes
from strop.types import GateResult, Group

_ROUNDING = 1e-9


@dataclass(frozen=True)
class AccuracyBand(Gate):
    """Gate that keeps a group if the success rate of the policy's own rollouts is between `low` and `high`."""

    low: float = 0.25  # least share of right rollouts
    high: float = 0.75  # largest share

    min_group: ClassVar[int] = 2

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise ConfigurationError(f"AccuracyBand needs 0 <= low <= high <= 1, got {self.low} and {self.high}")

    def __call__(self, group: Group) -> GateResult:
        right, count = successes(group)
        if not count:
            return GateResult(None, "no rollout counts")
        if right < (self.low - _ROUNDING) * count:
            return GateResult(None, f"fewer than {self.low:g} of its rollouts are right")
        if right > (self.high + _ROUNDING) * count:
            return GateResult(None, f"more than {self.high:g} of its rollouts are right")
        return GateResult(group)
