"""DOTS's forecast (2506.05316): a task will be solved as often as the reference tasks that look like it.

Attention from a task to tasks tried lately, softmax(<e_x, e_j> / sqrt(H)), averages their shares of right attempts;
then a line that was fitted on the references themselves. Readings: e is the state of the run's first model at the
prompt's last token, each feature in units of its deviation over the references, where the paper trains an encoder and
two projections on the records of other models; the line never slopes down and stays within 0 and 1. References are the
tasks that were tried last, so that no attempt is made for the forecast alone: what a task is does not depend on why it
was tried.
Papers: dots-rr
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from strop.control.estimators.support.calibration import foresight
from strop.control.estimators.support.nearest_tasks import ByTried
from strop.control.estimators.support.prompt_embeddings import PromptStates, standardized
from strop.control.estimators.support.recent_outcomes import Support
from strop.errors import ConfigurationError
from strop.types import FloatArray, Group, Metrics, Task

_UNKNOWN = 1 / 12  # the variance of what lies anywhere between 0 and 1
_FEWEST = 3  # references from which a line can be fitted


@dataclass
class ReferenceAttention(ByTried):
    """Shares of similar tasks; 1/2 before there are 3 references. Its variance is the line's mean squared error."""

    references: int = 256  # tasks, those tried last
    device: str = "cpu"  # cpu or cuda

    def __post_init__(self) -> None:
        if self.references < _FEWEST:
            raise ConfigurationError(f"ReferenceAttention needs references >= {_FEWEST}, got {self.references}")
        self._support = Support(self.references)

    def open(self, model: Path, seed: int) -> None:
        self._states = PromptStates.open(model, self.device)

    def foresee(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        states = self._ready()
        if len(self._support) < _FEWEST:
            return np.full(len(tasks), 0.5, np.float32), np.full(len(tasks), _UNKNOWN, np.float32)
        known, asked = standardized(
            states.of(self._support.prompts), states.of([states.prompt(task) for task in tasks])
        )
        shares = self._support.shares
        slope, height, error = fitted(attended(known, known, shares), shares)
        means = np.clip(slope * attended(asked, known, shares) + height, 0, 1)
        return means.astype(np.float32), np.full(len(tasks), error, np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how well the draw was foreseen, and from how many references."""
        return foresight(groups) | {"references": float(len(self._support))}


def attended(
    asked: NDArray[np.float64], known: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of `shares` [R] by likeness of `asked` [N, H] to `known` [R, H]: [N]."""
    scores = asked @ known.T / np.sqrt(known.shape[1])  # [N, R]
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray((weights / weights.sum(1, keepdims=True)) @ shares)


def fitted(foretold: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float, float]:
    """Slope and height of the least squares line from what was foretold to what came, and its mean squared error."""
    spread = float(foretold.var())
    slope = max(float(((foretold - foretold.mean()) * (shares - shares.mean())).mean()) / spread, 0) if spread else 0.0
    height = float(shares.mean() - slope * foretold.mean())
    return slope, height, float(np.square(slope * foretold + height - shares).mean())
