"""In-context pass-rate estimator (V0, 2602.03584): a Gaussian process over prompt embeddings and recent outcomes.

The context holds pairs of prompt and success rate of the tasks tried last; nothing is trained. Readings: features are
hidden states of the run's initial model at the prompt's last token, where the paper has an embedding model with learned
queries; the head is the closed form that its in-context classifier (TabPFN) learned to approximate: the posterior mean
of a Gaussian process with prior mean 1/2, kernel exp(-|x - y|^2 / 2H), and the binomial noise of each success rate. It
uses the rates themselves where the paper thresholds them at 1/2.

Papers: v0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from strop.control.estimators.support.calibration import prediction
from strop.control.estimators.support.nearest_tasks import ByTried
from strop.control.estimators.support.prompt_embeddings import PromptStates, standardized
from strop.control.estimators.support.recent_outcomes import Support
from strop.errors import ConfigurationError
from strop.types import FloatArray, Group, Metrics, Task

_PRIOR = 1 / 12  # the variance of what lies anywhere between 0 and 1


@dataclass
class Generalist(ByTried):
    """1/2 + k (K + noise)^-1 (rates - 1/2): relabelling the context turns p into 1 - p."""

    support: int = 256  # tasks in the context, those tried last
    device: str = "cpu"  # cpu or cuda

    def __post_init__(self) -> None:
        if self.support < 0:
            raise ConfigurationError(f"Generalist needs support >= 0, got {self.support}")
        self._support = Support(self.support)

    def load_model(self, model: Path, seed: int) -> None:
        self._states = PromptStates.open(model, self.device)

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        states = self._ready()
        if not len(self._support):
            return np.full(len(tasks), 0.5, np.float32), np.full(len(tasks), _PRIOR, np.float32)
        known, asked = standardized(
            states.of(self._support.prompts), states.of([states.prompt(task) for task in tasks])
        )
        noise = 1 / (4 * self._support.counts)  # at most, of the mean of so many rollouts
        means, variances = posterior(likeness(known, known), likeness(asked, known), self._support.shares, noise)
        return means.astype(np.float32), variances.astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how well the batch was predicted, and from how many tasks."""
        return prediction(groups) | {"support": float(len(self._support))}


def likeness(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(-|x - y|^2 / 2H) of [N, H] and [R, H]: [N, R]."""
    squares = np.square(one).sum(1)[:, None] + np.square(two).sum(1) - 2 * one @ two.T
    return np.asarray(np.exp(-np.maximum(squares, 0) / (2 * one.shape[1])))


def posterior(
    known: NDArray[np.float64], asked: NDArray[np.float64], shares: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean, held within 0 and 1, and variance [N], from likeness [R, R] and [N, R], shares [R] and their noise [R]."""
    weights = np.linalg.solve(_PRIOR * known + np.diag(noise), _PRIOR * asked.T).T  # [N, R]
    means = np.clip(0.5 + weights @ (shares - 0.5), 0, 1)
    return means, np.maximum(_PRIOR - (weights * _PRIOR * asked).sum(1), 0)
