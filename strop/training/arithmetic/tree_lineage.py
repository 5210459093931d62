"""Which attempts a token is part of, where attempts branch off from each other: from (parent, given) alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strop.types import Group, IntArray, Trajectory

_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


def lines(attempts: Sequence[Trajectory]) -> dict[str, dict[str, int]]:
    """For each attempt whose written tokens it goes through, and through how many: its ancestors' first, then its own.

    Ancestors that are not among the attempts are left out, and what was put into its mouth is nobody's.
    """
    known = {attempt.id: attempt for attempt in attempts}
    found: dict[str, dict[str, int]] = {}

    def line(attempt: Trajectory) -> dict[str, int]:
        if attempt.id not in found:
            parent = known.get(attempt.parent)
            before = {} if parent is None else line(parent)
            # of a parent's ancestor no more than the parent shares, though the same token may have been drawn again
            shared = {owner: min(count, _shared(known[owner], attempt)) for owner, count in before.items()}
            kept = {owner: count for owner, count in shared.items() if count}
            found[attempt.id] = kept | {attempt.id: attempt.num_tokens}
        return found[attempt.id]

    return {attempt.id: line(attempt) for attempt in attempts}


def counts(group: Group) -> dict[str, NDArray[np.float64]]:
    """How many of the attempts that count go through each token of each: [N]."""
    found = {attempt.id: np.zeros(attempt.num_tokens) for attempt in group.scored}
    for line in lines(group.scored).values():
        for owner, size in line.items():
            found[owner][:size] += 1
    return found


def _shared(owner: Trajectory, attempt: Trajectory) -> int:
    """How many of the owner's written tokens stand at the beginning of what the attempt was given."""
    path, is_written = _path(owner)
    begun = _begun(attempt)
    size = min(len(path), len(begun))
    differs = np.flatnonzero(path[:size] != begun[:size])
    return int(is_written[: differs[0] if len(differs) else size].sum())


def _path(attempt: Trajectory) -> tuple[IntArray, NDArray[np.bool_]]:
    """All tokens of its replies, and which of them it wrote itself: [L], [L]."""
    tokens = [turn.whole for turn in attempt.turns]
    written = [np.arange(len(turn.whole)) >= turn.num_prefix for turn in attempt.turns]
    return np.concatenate([_NOTHING, *tokens]), np.concatenate([_NOTHING.astype(bool), *written])


def _begun(attempt: Trajectory) -> IntArray:
    """Tokens of its replies before the first that it wrote itself: [L]."""
    tokens = [_NOTHING]
    for turn in attempt.turns:
        tokens.append(turn.prefix)
        if len(turn.tokens):
            break
    return np.concatenate(tokens)
