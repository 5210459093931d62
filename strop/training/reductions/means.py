"""Averaging reductions: over tokens, sequences, turns, groups, or by a constant length.

Papers: dr-grpo, nudgerl, rlinf-vla
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Reduction
from strop.training.arithmetic.twins import made
from strop.types import FloatArray, Group, Origin, Rollout

# Token sums over a constant (Dr. GRPO, 2503.20783): no rollout's weight depends on its own or others' length.


@dataclass(frozen=True)
class ConstantLength(Reduction):
    """1 / (rollouts of the whole batch * length); `length` is usually the token limit of a rollout.

    The shares add up to mean length / `length`, not to 1, and so do metrics weighted by them.
    """

    length: int  # divisor of every rollout's token sum

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ConfigurationError(f"ConstantLength needs a length >= 1, got {self.length}")

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        num_written = sum(rollout.num_tokens > 0 for rollout in rollouts)
        share = 1.0 / (max(num_written, 1) * self.length)
        return {rollout.id: np.full(rollout.num_tokens, share, dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """Weight of a part of the batch relative to other parts."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))


# Every rollout has equal weight, and within it every turn (RLinf-VLA's length norm, 2510.06710).


@dataclass(frozen=True)
class EqualTurns(Reduction):
    """1 / (non-empty rollouts of the whole batch * turns of the rollout * tokens of the turn)."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        return {rollout.id: _shares(rollout, count) for group in groups for rollout in group.scored}

    def mass(self, groups: Sequence[Group]) -> float:
        """Weight of a part of the batch relative to other parts."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))


def _shares(rollout: Rollout, count: float) -> FloatArray:
    lengths = np.array([len(turn.tokens) for turn in rollout.turns if len(turn.tokens)], dtype=np.int64)
    return np.repeat(1.0 / (count * max(len(lengths), 1) * lengths), lengths).astype(np.float32)


# Every task of the batch has equal weight: tokens are averaged over the rollouts of a group, then over groups.


@dataclass(frozen=True)
class GroupWise(Reduction):
    """1 / (groups of the whole batch * tokens of the group); groups without a token are not counted."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        sizes = [sum(rollout.num_tokens for rollout in group.scored) for group in groups]
        num_written = max(sum(size > 0 for size in sizes), 1)
        return {
            rollout.id: np.full(rollout.num_tokens, 1.0 / max(num_written * size, 1), dtype=np.float32)
            for group, size in zip(groups, sizes, strict=True)
            for rollout in group.scored
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """Weight of a part of the batch relative to other parts."""
        return float(sum(any(rollout.num_tokens for rollout in group.scored) for group in groups))


# Every token sampled by the policy has equal weight; a teacher's have no share and do not count in the denominator.


@dataclass(frozen=True)
class OwnTokenMean(Reduction):
    """1 / own tokens of the whole batch, 0 for demonstrations: for losses that only read them (CalibRL)."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        share = 1.0 / max(self.mass(groups), 1.0)
        return {
            rollout.id: np.full(rollout.num_tokens, share * _is_own(rollout), dtype=np.float32)
            for group in groups
            for rollout in group.scored
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """Weight of a part of the batch relative to other parts."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        return float(sum(rollout.num_tokens for rollout in rollouts if _is_own(rollout)))


def _is_own(rollout: Rollout) -> bool:
    return rollout.origin is not Origin.TEACHER


# Every rollout of the batch has equal weight (GRPO, 2402.03300), so a token of a long one weighs less.


@dataclass(frozen=True)
class SequenceMean(Reduction):
    """1 / (rollouts of the whole batch * tokens of the rollout); rollouts without a token are not counted."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        num_written = sum(rollout.num_tokens > 0 for rollout in rollouts)
        shares = {rollout.id: 1.0 / max(num_written * rollout.num_tokens, 1) for rollout in rollouts}
        return {rollout.id: np.full(rollout.num_tokens, shares[rollout.id], dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """Weight of a part of the batch relative to other parts."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))


# Every token of the batch has equal weight (DAPO, 2503.14476): long rollouts weigh more than short ones.


@dataclass(frozen=True)
class TokenMean(Reduction):
    """1 / tokens of the whole batch; a split into micro-batches does not change it."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        share = 1.0 / max(sum(rollout.num_tokens for rollout in rollouts), 1)
        return {rollout.id: np.full(rollout.num_tokens, share, dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """Weight of a part of the batch relative to other parts."""
        return float(sum(rollout.num_tokens for group in groups for rollout in group.scored))


# Every sampled rollout has equal weight, and so has its copy: the same completions under another prompt.


@dataclass(frozen=True)
class WithTwins(Reduction):
    """1 / (sampled rollouts of the whole batch * tokens of the rollout): copies have a share and do not count.

    A loss on rollouts and another one on their copies are then both means over the sampled rollouts.
    """

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        rollouts = [rollout for group in groups for rollout in group.scored]
        return {
            rollout.id: np.full(rollout.num_tokens, 1.0 / (count * max(rollout.num_tokens, 1)), dtype=np.float32)
            for rollout in rollouts
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """Weight of a part of the batch relative to other parts."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in made(group.scored)))
