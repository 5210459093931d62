"""Programs that try to leave the sandbox: one file for each kind of harm."""

from __future__ import annotations

from tests.sandbox.attacks import changing, kernel, network, others, reading, resources, sharing, verdicts
from tests.sandbox.attacks.attack import Against, Attack, Control

_ROOMS = (reading, changing, others, network, kernel, sharing, resources, verdicts)
ATTACKS = tuple(attack for room in _ROOMS for attack in room.ATTACKS)
SLOW = ("time and output", "memory", "number of processes", "disk", "leftovers")  # families that hold something

__all__ = ["ATTACKS", "SLOW", "Against", "Attack", "Control"]
