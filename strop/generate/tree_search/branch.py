"""Branching of rollouts at a token of another rollout."""

from __future__ import annotations

from dataclasses import replace

from strop.generate.turn_ops import as_prefix, cut
from strop.roles import Player
from strop.types import Origin, Rollout, Start

SHARED = "shared"  # the fact of which share of a branch's tokens is its root's


def branch_of(root: Rollout, at: int, start: Start) -> Start:
    """This start, given the first `at` written tokens of the root."""
    return replace(start, turns=as_prefix(cut(root.turns, at)), origin=Origin.BRANCHED, parent=root.id)


async def branched(start: Start, play: Player) -> Rollout:
    """A branch, played to its end."""
    branch = await play(start)
    shared = sum(turn.num_prefix for turn in start.turns)
    return replace(branch, facts=branch.facts | {SHARED: shared / max(shared + branch.num_tokens, 1)})
