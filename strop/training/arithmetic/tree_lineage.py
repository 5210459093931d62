"""Which rollouts a token is part of, where rollouts branch off from each other: from (parent, given) alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import Group, IntArray, Rollout

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


def lines(rollouts: Sequence[Rollout]) -> dict[str, dict[str, int]]:
    """For each rollout whose written tokens it goes through, and through how many: its ancestors' first, then its own.

    Ancestors that are not among the rollouts are left out, and what was put into its mouth is nobody's.
    """
    known = {rollout.id: rollout for rollout in rollouts}
    found: dict[str, dict[str, int]] = {}

    def line(rollout: Rollout) -> dict[str, int]:
        if rollout.id not in found:
            parent = known.get(rollout.parent)
            before = {} if parent is None else line(parent)
            # of a parent's ancestor no more than the parent shares, though the same token may have been drawn again
            shared = {owner: min(count, _shared(known[owner], rollout)) for owner, count in before.items()}
            kept = {owner: count for owner, count in shared.items() if count}
            found[rollout.id] = kept | {rollout.id: rollout.num_tokens}
        return found[rollout.id]

    return {rollout.id: line(rollout) for rollout in rollouts}


def counts(group: Group) -> dict[str, NDArray[np.float64]]:
    """How many of the rollouts that count go through each token of each: [N]."""
    found = {rollout.id: np.zeros(rollout.num_tokens) for rollout in group.scored}
    for line in lines(group.scored).values():
        for owner, size in line.items():
            found[owner][:size] += 1
    return found


def _shared(owner: Rollout, rollout: Rollout) -> int:
    """How many of the owner's written tokens stand at the beginning of what the rollout was given."""
    path, is_written = _path(owner)
    begun = _begun(rollout)
    size = min(len(path), len(begun))
    differs = np.flatnonzero(path[:size] != begun[:size])
    return int(is_written[: differs[0] if len(differs) else size].sum())


def _path(rollout: Rollout) -> tuple[IntArray, NDArray[np.bool_]]:
    """All tokens of its completions, and which of them it wrote itself: [L], [L]."""
    tokens = [turn.whole for turn in rollout.turns]
    written = [np.arange(len(turn.whole)) >= turn.num_prefix for turn in rollout.turns]
    return np.concatenate([_NOTHING, *tokens]), np.concatenate([_NOTHING.astype(bool), *written])


def _begun(rollout: Rollout) -> IntArray:
    """Tokens of its completions before the first that it wrote itself: [L]."""
    tokens = [_NOTHING]
    for turn in rollout.turns:
        tokens.append(turn.prefix)
        if len(turn.tokens):
            break
    return np.concatenate(tokens)
