"""Admission state: groups admitted and not yet trained, with their weight versions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """Versions at which untrained groups were admitted, before a step, oldest admission first."""

    step: int  # the current weight version
    groups_per_step: int
    running: tuple[int, ...]  # in flight
    waiting: tuple[int, ...]  # kept and ready, in the order of a batch
    tokens: int  # generated since the last step

    def left_by(self, drawn: int) -> list[int]:
        """Versions of the groups that a batch of the `drawn` oldest ones would leave."""
        return sorted((*self.running, *self.waiting[drawn:]))
