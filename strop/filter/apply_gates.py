"""What all gates together decide about a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from strop.types import Group, Verdict


def passes(group: Group, gates: Sequence[Callable[[Group], Verdict]]) -> Verdict:
    """Ask every gate; one that drops the group says why. A group the world failed entirely never gets that far."""
    if not group.trajectories:
        return Verdict(None, "it was given no attempt", is_meant=True)
    if not group.scored:
        return Verdict(None, f"none of {len(group.trajectories)} attempts counts: {group.trajectories[0].error}")
    kept = Verdict(group)
    for gate in gates:
        assert kept.group is not None
        kept = gate(kept.group)
        if kept.group is None:
            name = type(gate).__name__
            return replace(kept, reason=kept.reason or name, by=name)
    return kept
