"""Advantage along a diffusion model's unmasking steps (TraceRL, 2509.06949): every step is one action.

Papers: tracerl
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.backends import ORDER
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.td_traces import whitened
from strop.types import Group, IntArray, Rollout


@dataclass(frozen=True)
class TraceReturns(Advantage):
    """Advantage of token j in step t: A_j = r_j - V_j + discount * (V_(t+1) + trace * A_(t+1)), with the return r_j +
    discount * return_(t+1); V, A and return of a step are the means over its tokens.

    The rollout's reward, standardised within its group with the population's deviation (0 where there is none), is on
    every token of its last step. Steps are merged as the view merges them.
    """

    discount: float = 1.0  # from step to step
    trace: float = 1.0  # lambda: 1 uses rewards alone, 0 the critic alone
    merged: int = 8  # neighbouring steps that count as one, as in `InOrder`

    needs_values: ClassVar[bool] = True
    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.merged < 1 or not (0 <= self.discount <= 1 and 0 <= self.trace <= 1):
            raise ConfigurationError(f"TraceReturns needs merged >= 1, discount and trace from 0 to 1, got {self}")

    def __call__(self, groups: Sequence[Group]) -> None:
        paid = (zip(group.scored, whitened([group.rewards])[0], strict=True) for group in groups)
        for rollout, reward in chain.from_iterable(paid):
            if rollout.values is None or len(rollout.values) != rollout.num_tokens:
                raise ConfigurationError(f"TraceReturns needs a value for each token of {rollout.id}: add CanvasCritic")
            if not rollout.num_tokens:
                rollout.advantages = rollout.returns = np.zeros(0, dtype=np.float32)
                continue
            values = rollout.values.astype(np.float64)
            advantages, returns = self._along(steps_of(rollout, self.merged), values, float(reward))
            rollout.advantages, rollout.returns = advantages.astype(np.float32), returns.astype(np.float32)

    def _along(
        self, steps: IntArray, values: NDArray[np.float64], reward: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Advantage and return of each token, from the last step to the first: [N] each."""
        advantages, returns = np.zeros(len(steps)), np.zeros(len(steps))
        paid, value, advantage, later = reward, 0.0, 0.0, 0.0  # V, A and the return of the step that follows
        for step in np.unique(steps)[::-1]:
            own = steps == step
            advantages[own] = paid - values[own] + self.discount * (value + self.trace * advantage)
            returns[own] = paid + self.discount * later
            value, advantage, later = values[own].mean(), advantages[own].mean(), returns[own].mean()
            paid = 0.0
        return advantages, returns


def steps_of(rollout: Rollout, merged: int) -> IntArray:
    """The unmasking step of each completion token, from 0 over all turns: [N]; a turn without a canvas is one step."""
    found: list[IntArray] = []
    first = 0
    for turn in rollout.turns:
        size = len(turn.tokens)
        order = turn.aux[ORDER][len(turn.prompt) :, 0] if ORDER in turn.aux else np.zeros(size, dtype=np.int64)
        steps = np.unique(order, return_inverse=True)[1].reshape(-1) // merged + first
        found.append(steps.astype(np.int64))
        first = int(steps.max(initial=first - 1)) + 1
    return np.concatenate(found)
