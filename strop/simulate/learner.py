"""Simulated policy: one Bernoulli variable per task, trained by the policy gradient.

The logit of task i is x_i = f_i . theta with f_i . f_j = transfer ** |kind_i - kind_j| + memory * (i == j). A rollout
is correct with p = sigmoid(x); d p / d x is p (1 - p), and a group in which k of G are correct estimates it, without
bias, by k/G (1 - k/G) G/(G - 1): the gradient of GRPO without its standard deviation. A step moves theta along the sum
of such gradients, so x_j by the rate times their sum weighted by f_i . f_j. The only free parameter is the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strop.control.seeded_choice import Doubles
from strop.simulate.population import Population
from strop.success import successes
from strop.types import Group

LUCK = 0.3  # of a broken task


@dataclass
class Learner:
    """Skills by kind, and what was learned of single tasks alone."""

    population: Population
    skills: Doubles = field(init=False)  # [K]
    own: Doubles = field(init=False)  # [N]
    version: int = 0  # steps taken

    def __post_init__(self) -> None:
        self.skills = np.array([kind.skill for kind in self.population.scenario.kinds], dtype=np.float64)
        self.own = np.zeros(len(self.population.tasks))

    def probabilities(self, bias: float = 0.0) -> Doubles:
        """Of success at each task now, or of a policy whose skill at the target kinds is lower by `bias`: [N]."""
        tasks = self.population
        skills = self.skills - bias * self.is_target
        probabilities = sigmoid(skills[tasks.kinds] + tasks.offsets + self.own)
        return np.where(tasks.is_impossible, 0.0, np.where(tasks.is_broken, LUCK, probabilities))

    @property
    def is_target(self) -> Doubles:
        return np.array([float(kind.is_target) for kind in self.population.scenario.kinds])  # [K]

    @property
    def transfer(self) -> Doubles:
        """What a step at one kind gives each other one: [K, K]."""
        places = np.arange(len(self.skills))
        return np.asarray(self.population.scenario.transfer ** np.abs(places[:, None] - places[None, :]).astype(float))

    def heldout(self) -> float:
        """Accuracy on tasks of the target kinds that can be solved and are never tried; exact."""
        probabilities = sigmoid(self.skills[:, None] + self.population.heldout)  # [K, H]
        return float(self.is_target @ probabilities.mean(axis=1) / self.is_target.sum())

    def slopes(self) -> Doubles:
        """What a unit of gradient at a task of each kind adds to held-out accuracy: [K]."""
        probabilities = sigmoid(self.skills[:, None] + self.population.heldout)
        rises = self.is_target * (probabilities * (1 - probabilities)).mean(axis=1) / self.is_target.sum()
        return np.asarray(self.transfer @ rises)

    def train(self, groups: Sequence[Group]) -> None:
        """One step; each rollout weighs the same, whatever the size of its group, and a batch of plain groups 1.

        Not called `learn`: a part of a run by that name is taught, too, and an oracle holds its learner.
        """
        scenario, tasks = self.population.scenario, self.population
        gradients = np.zeros(len(tasks.tasks))
        for group in groups:
            right, count = successes(group)
            weight = count / (scenario.groups_per_step * scenario.group_size)
            gradients[tasks.places[group.task.id]] += weight * estimate(right, count)
        self.own += scenario.rate * scenario.memory * gradients
        useful = np.where(tasks.is_broken, 0.0, gradients)
        by_kind = np.bincount(tasks.kinds, useful, minlength=len(self.skills))
        self.skills = self.skills + scenario.rate * self.transfer @ by_kind
        self.version += 1


def estimate(right: float, count: float) -> float:
    """Of p (1 - p), without bias, from a group."""
    share = right / count if count else 0.0
    return share * (1 - share) * count / (count - 1) if count > 1 else 0.0


def sigmoid(logits: Doubles) -> Doubles:
    return np.asarray(1 / (1 + np.exp(-logits)))
