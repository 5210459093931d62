"""Staleness bound of AReaL (Fu et al., 2505.24298): generation may run at most `lag` weight versions ahead of training.

RollArt's bound (2512.22560) is the same, on the version at which a rollout starts; here nothing is evicted for it.
Papers: areal, rollart
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError
from strop.roles import Admission


@dataclass
class BoundedLag(Admission):
    """Admission of a group iff running + waiting + trained + 1 <= (lag + step + 1) * groups_per_step.

    With exactly groups_per_step groups trained per version, trained = step * groups_per_step, and the rule is running +
    waiting < (lag + 1) * groups_per_step. A dropped group leaves both counts and so frees its place. A group counts as
    waiting until the version trained on it is published.

    Admission alone bounds the lag only if groups are trained in the order of admission, and a quick one overtakes a
    slow one. So a step waits for slower groups as soon as training those it would leave, in order and groups_per_step
    at a time, would make one of them too old. Slow groups are never discarded.

    lag = 0 is synchronous: replacements for dropped groups wait until nothing is running and then start together, so
    that the batch does not depend on how long a rollout or a reward took. The rule must be asked again right after each
    start, before anything can finish: being asked when full ends a wave.
    """

    lag: int = 0  # versions; 0: synchronous
    _is_filling: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def is_waved(self) -> bool:
        return self.lag == 0

    def __post_init__(self) -> None:
        if self.lag < 0:
            raise ConfigurationError(f"BoundedLag needs lag >= 0, got {self.lag}")

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        has_room = running + waiting < (self.lag + 1) * groups_per_step
        self._is_filling = has_room and (self._is_filling or running == 0)
        return has_room and (self._is_filling or self.lag > 0)

    def batch_size(self, standing: Standing) -> int:
        count = standing.groups_per_step
        left = standing.left_by(count)
        trained_at = (standing.step + 1 + place // count for place in range(len(left)))
        is_young = all(at - version <= self.lag for at, version in zip(trained_at, left, strict=True))
        return count if is_young and len(standing.waiting) >= count else 0
