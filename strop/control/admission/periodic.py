"""Periodic weight synchronization (semi-online training, 2506.21495): engines get new weights once in `period` steps.

Papers: semi-online
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError
from strop.roles import Admission


@dataclass
class Periodic(Admission):
    """Groups of `period` steps are sampled at once, with the weights of the first step, then trained step by step.

    The step from version t trains on samples of version period * (t // period): period 1 is online, one as long as the
    run is offline. Nothing is sampled while weights change, so runs are deterministic; replacements of dropped groups
    wait until nothing is running and then start together. `steps` is the run's number of steps: nothing is generated
    that no step is left for; 0: endless.
    """

    period: int  # steps on what one version wrote
    steps: int = 0  # of the run; 0: endless
    _is_filling: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.period < 1 or self.steps < 0:
            raise ConfigurationError(f"Periodic needs period >= 1 and steps >= 0, got {self.period} and {self.steps}")

    @property
    def is_ordered(self) -> bool:
        return True

    @property
    def lag(self) -> int:
        """How many versions old a token may be when it is trained."""
        return self.period - 1

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        has_room = step % self.period == 0 and running + waiting < self._depth(step) * groups_per_step
        if not has_room:
            self._is_filling = False
        elif running == 0:
            self._is_filling = True
        return has_room and self._is_filling

    def batch_size(self, standing: Standing) -> int:
        left = self._depth(standing.step) - standing.step % self.period  # batches of this round still to come
        is_full = len(standing.waiting) >= left * standing.groups_per_step
        return standing.groups_per_step if is_full and not standing.running else 0

    def _depth(self, step: int) -> int:
        """Batches of the round that `step` is in."""
        begun = step - step % self.period
        return min(self.period, self.steps - begun) if self.steps else self.period
