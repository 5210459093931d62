"""Lineage of tokens in a tree of rollouts, derived from (parent, prefix) alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import Group, IntArray, Rollout

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


def lines(rollouts: Sequence[Rollout]) -> dict[str, dict[str, int]]:
    """For each rollout, the rollouts whose tokens it contains and how many: ancestors first, then itself.

    Ancestors outside the given rollouts are left out, and so are prefix tokens that no rollout sampled.
    """
    known = {rollout.id: rollout for rollout in rollouts}
    found: dict[str, dict[str, int]] = {}

    def line(rollout: Rollout) -> dict[str, int]:
        if rollout.id not in found:
            parent = known.get(rollout.parent)
            before = {} if parent is None else line(parent)
            # no more of a grandparent than the parent shares, though the same token may have been sampled again
            shared = {owner: min(count, _shared(known[owner], rollout)) for owner, count in before.items()}
            kept = {owner: count for owner, count in shared.items() if count}
            found[rollout.id] = kept | {rollout.id: rollout.num_tokens}
        return found[rollout.id]

    return {rollout.id: line(rollout) for rollout in rollouts}


def counts(group: Group) -> dict[str, NDArray[np.float64]]:
    """Number of scored rollouts that contain each token of each rollout: [N]."""
    found = {rollout.id: np.zeros(rollout.num_tokens) for rollout in group.scored}
    for line in lines(group.scored).values():
        for owner, size in line.items():
            found[owner][:size] += 1
    return found


def _shared(owner: Rollout, rollout: Rollout) -> int:
    """How many of the owner's sampled tokens are part of the rollout's prefix."""
    path, is_written = _path(owner)
    begun = _prefix_tokens(rollout)
    size = min(len(path), len(begun))
    differs = np.flatnonzero(path[:size] != begun[:size])
    return int(is_written[: differs[0] if len(differs) else size].sum())


def _path(rollout: Rollout) -> tuple[IntArray, NDArray[np.bool_]]:
    """All tokens of its completions, and which of them it sampled itself: [L], [L]."""
    tokens = [turn.whole for turn in rollout.turns]
    written = [np.arange(len(turn.whole)) >= turn.num_prefix for turn in rollout.turns]
    return np.concatenate([_NOTHING, *tokens]), np.concatenate([_NOTHING.astype(bool), *written])


def _prefix_tokens(rollout: Rollout) -> IntArray:
    """Completion tokens before the first that it sampled itself: [L]."""
    tokens = [_NOTHING]
    for turn in rollout.turns:
        tokens.append(turn.prefix)
        if len(turn.tokens):
            break
    return np.concatenate(tokens)
