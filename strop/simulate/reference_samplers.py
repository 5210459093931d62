"""Reference samplers for comparisons: random fixed preferences, and an oracle that knows the true success rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.seeded_choice import Doubles, drawn, highest
from strop.roles import PassRateEstimator, Sampler
from strop.simulate.learner import Learner
from strop.types import Task


@dataclass
class Oracle(Sampler):
    """Tasks with the largest true gradient, p (1 - p), each once in a batch.

    With `per_token` those that add most to held-out accuracy per token.
    """

    learner: Learner
    per_token: bool = False
    seed: int = 0
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self.learner.population.tasks[self._pending.next(step, self._choose)]

    def _choose(self, number: int) -> Sequence[int]:
        count = self.learner.population.scenario.groups_per_step
        return highest(self.scores(), count, (self.seed, number))

    def scores(self) -> Doubles:
        tasks, probabilities = self.learner.population, self.learner.probabilities()
        gradients = np.where(tasks.is_broken, 0.0, probabilities * (1 - probabilities))
        return gradients * self.learner.slopes()[tasks.kinds] / tasks.tokens if self.per_token else gradients


@dataclass
class FixedTaste(Sampler):
    """Fixed random weights of tasks: the effect of uneven choice alone."""

    learner: Learner
    seed: int = 0
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self.learner.population.tasks[self._pending.next(step, self._choose)]

    def _choose(self, number: int) -> Sequence[int]:
        population = self.learner.population
        weights = np.exp(np.random.default_rng([self.seed, 3]).normal(size=len(population.tasks)))
        return drawn(weights, population.scenario.groups_per_step, (self.seed, number, 4))
