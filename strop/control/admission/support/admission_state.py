"""What a pace sees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """What a pace sees before a step: the versions at which untrained groups were admitted, oldest admission first."""

    step: int  # the current weight version
    groups_per_step: int
    running: tuple[int, ...]  # in flight
    waiting: tuple[int, ...]  # kept and ready, in the order of a draw
    tokens: int  # generated since the last step

    def left_by(self, drawn: int) -> list[int]:
        """Versions of the groups that a draw of the `drawn` oldest ones would leave."""
        return sorted((*self.running, *self.waiting[drawn:]))
