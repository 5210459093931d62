"""Online difficulty filtering (2504.03380): groups stay that are neither solved by nearly all nor by nearly none.

The pipeline makes others in place of those that are dropped. At equal tokens that alone gains nothing: a group without
contrast gave no gradient before, either; what it changes is how large each step is.
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
    """Keep a group if the share of right ones among the policy's own rollouts is from `low` to `high`."""

    low: float = 0.25  # least share of right rollouts
    high: float = 0.75  # largest share

    min_group: ClassVar[int] = 2

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
