"""Sequential application of all gates to a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from strop.types import GateResult, Group


def passes(group: Group, gates: Sequence[Callable[[Group], GateResult]]) -> GateResult:
    """Ask every gate; one that drops the group says why. A group the environment failed entirely never gets that
    far.
    """
    if not group.rollouts:
        return GateResult(None, "it was given no rollout", is_meant=True)
    if not group.scored:
        return GateResult(None, f"none of {len(group.rollouts)} rollouts counts: {group.rollouts[0].error}")
    kept = GateResult(group)
    for gate in gates:
        assert kept.group is not None
        kept = gate(kept.group)
        if kept.group is None:
            name = type(gate).__name__
            return replace(kept, reason=kept.reason or name, by=name)
    return kept
