"""Sample sizes: tasks, and rollouts of each, needed to detect a difference of so many points between two models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from strop.errors import ConfigurationError

# Where both models try the same tasks, difficulty cancels out, and what is left besides probability is how the gain
# differs
# among tasks: not at all (even), or all of it in as few as can hold it (uneven, a variance of gain * (1 - gain)); where
# they try different tasks, difficulty counts twice.
Kind: TypeAlias = Literal["even", "uneven", "different"]
_SIGMAS = 1.959964 + 0.841621  # a 95% interval that leaves out 0, in 80% of all trials


@dataclass(frozen=True)
class TaskSpread:
    """Variance components: `within` is the variance of one rollout of a task, `between` that of tasks' success
    rates.
    """

    within: float
    between: float

    def tasks(self, gain: float, rollouts: int, kind: Kind = "uneven") -> int:
        """Tasks of each model that show a difference of `gain`; see `Kind`."""
        beside = {"even": 0.0, "uneven": gain * (1 - gain), "different": 2 * self.between}[kind]
        return math.ceil(_SIGMAS**2 * (beside + 2 * self.within / rollouts) / gain**2 - 1e-9)

    def gain(self, tasks: int, rollouts: int) -> float:
        """The smallest difference that so many tasks show, however uneven: where `tasks` holds with equality."""
        square, probability = _SIGMAS**2, 2 * self.within / rollouts
        whole = tasks + square
        return min((square + math.sqrt(square**2 + 4 * whole * square * probability)) / (2 * whole), 1.0)


def spread_of(right: Sequence[int], counted: Sequence[int]) -> TaskSpread:
    """From recorded rollouts: unbiased variances, that between tasks without what sampling within them adds."""
    pairs = [(c, n) for c, n in zip(right, counted, strict=True) if n > 1]
    if len(pairs) < 2:
        raise ConfigurationError(
            "a plan needs at least 2 tasks with 2 rollouts each, to tell luck from difficulty: add --rollouts 4"
        )
    within = [c * (n - c) / (n * (n - 1)) for c, n in pairs]
    shares = [c / n for c, n in pairs]
    mean = sum(shares) / len(shares)
    total = sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)
    probability = sum(w / n for w, (_, n) in zip(within, pairs, strict=True)) / len(pairs)
    return TaskSpread(sum(within) / len(within), max(total - probability, 0.0))
