"""StepAgent's inverse form (2411.03817, as in GAIL): who cannot be told from the expert is paid, step by step.

D(h, a) = P(expert), a logistic regression on the state after the step; its loss is -log D of the expert's steps and
-log(1 - D) of the policy's. A step of the policy is paid -log(1 - D), D within 0.001 and 0.999: log D is never above 0
and would pay for ending early. Reading: credit is that, standardised over the draw; D learns after it was asked, a few
steps of descent on the draw. The expert's steps get no credit.
Papers: stepagent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.td_traces import whitened
from strop.training.requirements import HIDDEN_AFTER, Note
from strop.types import Group, Metrics, Origin, Trajectory

_EDGE = 1e-3  # D stays so far from 0 and 1
_SMALLEST = 1e-9  # length of a state


@dataclass
class Discriminated(Advantage):
    """One D for the whole run; at first it cannot tell anybody apart, and nobody has credit."""

    rate: float = 0.5  # of its descent
    steps: int = 20  # of descent on each draw

    needs: ClassVar[frozenset[Note]] = frozenset({HIDDEN_AFTER})

    _slopes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), init=False, repr=False, compare=False)
    _level: float = field(default=0.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.steps < 1:
            raise ConfigurationError(f"Discriminated needs rate > 0 and steps >= 1, got {self.rate} and {self.steps}")

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        own = [attempt for attempt in attempts if not is_expert(attempt)]
        for attempt in attempts:
            attempt.credit(0.0)
        paid = [np.array([-np.log1p(-self.told(attempt))]) for attempt in own]
        for attempt, (credit,) in zip(own, whitened(paid), strict=True):
            attempt.credit(float(credit))

    def told(self, attempt: Trajectory) -> float:
        """D of an attempt's last step; 1/2 as long as nothing was learned."""
        if not len(self._slopes) or not attempt.num_tokens:
            return 0.5
        sure = _sigmoid(features(attempt) @ self._slopes + self._level)
        return float(np.clip(sure, _EDGE, 1 - _EDGE))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Tell them better apart next time; how many were told apart this time, and D of the policy's steps."""
        attempts = [attempt for group in groups for attempt in group.scored if attempt.num_tokens]
        if not attempts:
            return {}
        is_taught = np.array([is_expert(attempt) for attempt in attempts])
        before = np.array([self.told(attempt) for attempt in attempts])
        self._fit(np.stack([features(attempt) for attempt in attempts]), is_taught.astype(np.float64))
        right = np.where(is_taught, before > 0.5, before < 0.5)
        passed = {"imitation": float(before[~is_taught].mean())} if not is_taught.all() else {}
        return {"discriminated": float(right.mean()), **passed}

    def _fit(self, table: NDArray[np.float64], targets: NDArray[np.float64]) -> None:
        """Descend on the mean of -y log D - (1 - y) log(1 - D): [R, F], [R]."""
        if not len(self._slopes):
            self._slopes = np.zeros(table.shape[1])
        for _ in range(self.steps):
            missed = _sigmoid(table @ self._slopes + self._level) - targets  # [R]
            self._slopes = self._slopes - self.rate * (missed @ table) / len(targets)
            self._level -= self.rate * float(missed.mean())

    def state(self) -> dict[str, Any]:
        return {"slopes": self._slopes.tolist(), "level": self._level}

    def restore(self, state: dict[str, Any]) -> None:
        self._slopes, self._level = np.array(state["slopes"], dtype=np.float64), float(state["level"])


def is_expert(attempt: Trajectory) -> bool:
    return attempt.origin is Origin.TEACHER


def features(attempt: Trajectory) -> NDArray[np.float64]:
    """The state after the last token, of length 1: [F]."""
    state: NDArray[np.float64] = HIDDEN_AFTER.of(attempt)[-1].astype(np.float64)
    return state / max(float(np.linalg.norm(state)), _SMALLEST)


def _sigmoid(values: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(values, -50, 50)))
