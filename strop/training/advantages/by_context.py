"""NudgeRL's credit (2605.15726): what an attempt does within its context, and what the context does for the task.

Papers: nudgerl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.roles import Advantage
from strop.training.arithmetic.twins import is_twin, made
from strop.types import Group, Metrics, Trajectory

_NAME = "context"  # the fact that holds an attempt's context; 0: none


@dataclass(frozen=True)
class ByContext(Advantage):
    """(r - mean of its context) + between * (mean of its context - mean of all), whitened over the group.

    Without a context it is r - mean of all. Whitened: minus its mean, divided by its spread (of a population) +
    epsilon. A twin gets its parent's, and none where that does not count. With between = 1
    this is GRPO, contexts or not.
    """

    between: float = 1.1  # weight of what a context does for the task
    epsilon: float = 1e-5  # keeps the divisor above 0

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            attempts = made(group.scored)
            within, between = _parts(attempts)
            credit = within + self.between * between
            centred = credit - credit.mean() if len(credit) else credit
            whitened = centred / (centred.std() + self.epsilon) if len(credit) else credit
            given = {attempt.id: float(value) for attempt, value in zip(attempts, whitened, strict=True)}
            for attempt in group.scored:
                attempt.credit(given.get(attempt.parent, 0.0) if is_twin(attempt) else given[attempt.id])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how far contexts are apart, and what their attempts earn beyond those without."""
        attempts = [attempt for group in groups for attempt in made(group.scored)]
        apart = [abs(float(each)) for group in groups for each in _parts(made(group.scored))[1]]
        nudged = [attempt.reward for attempt in attempts if _context(attempt)]
        plain = [attempt.reward for attempt in attempts if not _context(attempt)]
        gain = float(np.mean(nudged) - np.mean(plain)) if nudged and plain else 0.0
        return {"between_contexts": sum(apart) / max(len(apart), 1), "context_gain": gain}


def _parts(attempts: Sequence[Trajectory]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """r - the mean of its context, and that mean - the mean of all: [N], [N]. Without a context: r - mean, and 0."""
    rewards = np.array([attempt.reward for attempt in attempts], dtype=np.float64)
    rewards = rewards - rewards[:1]  # equal ones give exactly 0
    contexts = np.array([_context(attempt) for attempt in attempts])
    mean = rewards.mean() if len(rewards) else 0.0
    own = np.full(len(rewards), mean)
    for context in set(contexts.tolist()) - {0.0}:
        own[contexts == context] = rewards[contexts == context].mean()
    return rewards - own, own - mean


def _context(attempt: Trajectory) -> float:
    return attempt.facts.get(_NAME, 0.0)
