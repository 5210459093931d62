"""Fixed staleness for experiments: every token is trained exactly `lag` weight versions after it was sampled."""

from __future__ import annotations

from dataclasses import dataclass

from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError
from strop.roles import Admission


@dataclass(frozen=True)
class ExactLag(Admission):
    """Queue of `lag` training batches: a step waits until all admitted groups are done, then trains on the oldest
    batch.

    The first `lag` steps train on samples of version 0. Weights never change during sampling, so runs with lag are
    deterministic, too. `steps` is the run's number of steps: nothing is generated that no step is left for; 0: endless.
    """

    lag: int  # versions
    steps: int = 0  # of the run; 0: endless

    @property
    def is_ordered(self) -> bool:
        return True

    def __post_init__(self) -> None:
        if self.lag < 0 or self.steps < 0:
            raise ConfigurationError(f"ExactLag needs lag >= 0 and steps >= 0, got {self.lag} and {self.steps}")

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool:
        return running + waiting < self._depth(step) * groups_per_step

    def batch_size(self, standing: Standing) -> int:
        is_full = len(standing.waiting) >= self._depth(standing.step) * standing.groups_per_step
        return standing.groups_per_step if is_full and not standing.running else 0

    def _depth(self, step: int) -> int:
        """Batches that are sampled ahead."""
        return min(self.lag + 1, self.steps - step) if self.steps else self.lag + 1
