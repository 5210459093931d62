"""Reductions that average: over tokens, sequences, turns, groups, or by a constant length."""

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

    The shares add up to mean length / `length`, not to 1, and so does everything logged with them.
    """

    length: int  # that every rollout is divided by

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ConfigurationError(f"ConstantLength needs a length >= 1, got {self.length}")

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        num_written = sum(rollout.num_tokens > 0 for rollout in rollouts)
        share = 1.0 / (max(num_written, 1) * self.length)
        return {rollout.id: np.full(rollout.num_tokens, share, dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))


# Every rollout counts the same however long it is, and within it every turn (RLinf-VLA's length norm, 2510.06710).


@dataclass(frozen=True)
class EqualTurns(Reduction):
    """1 / (rollouts of the whole batch * turns of the rollout * tokens of the turn), of those that wrote something."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        return {rollout.id: _shares(rollout, count) for group in groups for rollout in group.scored}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))


def _shares(rollout: Rollout, count: float) -> FloatArray:
    lengths = np.array([len(turn.tokens) for turn in rollout.turns if len(turn.tokens)], dtype=np.int64)
    return np.repeat(1.0 / (count * max(len(lengths), 1) * lengths), lengths).astype(np.float32)


# Every task of the batch counts the same: tokens are averaged over the rollouts of a group, then over groups.


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
        """What these weigh in a batch that they are only a part of."""
        return float(sum(any(rollout.num_tokens for rollout in group.scored) for group in groups))


# Every token of the policy's own counts the same; a teacher's have no share and no place in the denominator.


@dataclass(frozen=True)
class OwnTokenMean(Reduction):
    """1 / own tokens of the whole batch, 0 for demonstrations: for losses that only look at them (CalibRL)."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        share = 1.0 / max(self.mass(groups), 1.0)
        return {
            rollout.id: np.full(rollout.num_tokens, share * _is_own(rollout), dtype=np.float32)
            for group in groups
            for rollout in group.scored
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        return float(sum(rollout.num_tokens for rollout in rollouts if _is_own(rollout)))


def _is_own(rollout: Rollout) -> bool:
    return rollout.origin is not Origin.TEACHER


# Every rollout of the batch counts the same (GRPO, 2402.03300), so a token of a long one weighs less.


@dataclass(frozen=True)
class SequenceMean(Reduction):
    """1 / (rollouts of the whole batch * tokens of the rollout); rollouts without a token are not counted."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        num_written = sum(rollout.num_tokens > 0 for rollout in rollouts)
        shares = {rollout.id: 1.0 / max(num_written * rollout.num_tokens, 1) for rollout in rollouts}
        return {rollout.id: np.full(rollout.num_tokens, shares[rollout.id], dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in group.scored))


# Every token of the batch counts the same (DAPO, 2503.14476): long rollouts weigh more than short ones.


@dataclass(frozen=True)
class TokenMean(Reduction):
    """1 / tokens of the whole batch, so that a split into micro-batches changes nothing."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        rollouts = [rollout for group in groups for rollout in group.scored]
        share = 1.0 / max(sum(rollout.num_tokens for rollout in rollouts), 1)
        return {rollout.id: np.full(rollout.num_tokens, share, dtype=np.float32) for rollout in rollouts}

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens for group in groups for rollout in group.scored))


# Every rollout that was made counts the same, and its twin, the same completions behind other messages, as much as it.


@dataclass(frozen=True)
class WithTwins(Reduction):
    """1 / (rollouts made in the whole batch * tokens of the rollout): twins have a share and no place in the count.

    A loss on rollouts and another one on their twins are then both means over the rollouts that were made.
    """

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        count = max(self.mass(groups), 1.0)
        rollouts = [rollout for group in groups for rollout in group.scored]
        return {
            rollout.id: np.full(rollout.num_tokens, 1.0 / (count * max(rollout.num_tokens, 1)), dtype=np.float32)
            for rollout in rollouts
        }

    def mass(self, groups: Sequence[Group]) -> float:
        """What these weigh in a batch that they are only a part of."""
        return float(sum(rollout.num_tokens > 0 for group in groups for rollout in made(group.scored)))
