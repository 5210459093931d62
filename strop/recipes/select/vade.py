"""VADE: Thompson sampling of tasks from Beta pass-rate estimates with decay; the rest is GRPO.

Title: VADE: Variance-Aware Dynamic Sampling via Online Sample-Level Difficulty Estimation for Multimodal RL
Paper: arXiv 2511.18902 (2025)
Claim: Better and with fewer rollouts than uniform sampling and filtering on multimodal reasoning.
Reading: Beta counts per task and the score d (1 - d)^2 are the authors'. The factors of the two-scale decay were not
    found: 0.99 per version and 0.7 per visit are our own. 256 tasks replace its data set, so that they repeat. Its KL
    penalty and optimizer steps per batch are not known: GRPO's 0.04 and one.
Left out: Images.
Acts: score_gain != 0 with tasks=16
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.estimators.pass_rate_counts import TaskCounts
from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.control.seeded_choice import Doubles, highest
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import FloatArray, Group, Metrics, Task

# VADE's choice (2511.18902): a pass rate is sampled from each task's posterior, and the highest scores come first.
#
# Reading: the posterior is a Beta distribution with mean and variance of the run's pass-rate estimator; with
# `TaskCounts` these are the paper's counts. The posterior of a task that was not sampled for long widens again, so it
# comes back.

_LEAST = 1e-6  # keeps mean and weight of a Beta distribution inside their open ranges


@dataclass
class Thompson(Sampler):
    """Sampler of the tasks with the highest d (1 - d)^power, d ~ Beta; a pool is ranked anew for every version.

    Power 2 prefers tasks that a third of the rollouts solve, power 1 those that half of them solve.
    """

    envs: tuple[Environment, ...]
    tasks: int = 256  # of each environment, to choose from
    power: float = 2.0  # of the failure rate 1 - d
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)
    _pool_score: float = field(default=0.0, init=False, repr=False, compare=False)  # expected score of the whole pool

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.power < 0:
            raise ConfigurationError(f"Thompson needs power >= 0, got {self.power}")
        self._pool = Pool(self.envs, self.tasks)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._pool.task(self._pending.next(step, lambda number: self._ranked(step, estimator, number)))

    def _ranked(self, step: int, estimator: PassRateEstimator, number: int) -> list[int]:
        means, variances = estimator.predict(self._pool.tasks(range(len(self._pool))), step)
        self._pool_score = float(self._score(means.astype(np.float64)).mean())
        first, second = beta(means, variances)
        found = np.random.default_rng([self.seed, number, 0]).beta(first, second)
        return highest(self._score(found), len(self._pool), (self.seed, number, 1))

    def _score(self, rates: Doubles) -> Doubles:
        return np.asarray(rates * (1 - rates) ** self.power)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: expected score of the sampled tasks minus that of the pool."""
        means = np.array([group.predicted[0] for group in groups if group.predicted is not None], dtype=np.float64)
        return {"score_gain": float(self._score(means).mean()) - self._pool_score if len(means) else 0.0}

    def state(self) -> dict[str, Any]:
        return {"pending": self._pending.state(), "usual": self._pool_score}

    def restore(self, state: dict[str, Any]) -> None:
        self._pending.restore(state["pending"])
        self._pool_score = float(state["usual"])


def beta(means: FloatArray, variances: FloatArray) -> tuple[Doubles, Doubles]:
    """Parameters of the Beta distributions with these means and variances: [N], [N]."""
    mean = np.clip(means.astype(np.float64), _LEAST, 1 - _LEAST)
    weight = mean * (1 - mean) / np.maximum(variances.astype(np.float64), 1e-12) - 1
    weight = np.maximum(weight, _LEAST)
    return mean * weight, (1 - mean) * weight


def vade(
    setting: Setting = Setting(env="countdown:4"),
    tasks: int = OfEndless(256),  # of each environment, to choose from; all of a table
    power: float = 2.0,  # of the failure rate: 2 prefers pass rates of 1/3, 1 of 1/2
    per_version: float = 0.99,  # share of a task's counts that is left one version later
    per_visit: float = 0.7,  # share of them that is left when it is sampled again
) -> Run:
    """GRPO on the tasks that Thompson sampling chooses."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.04))
    run = setting.run(
        "vade", GroupStandard(), losses, estimator=TaskCounts(per_version, per_visit), reduction=SequenceMean()
    )
    run.sampler = Thompson(run.envs, covering(run.envs, tasks), power, setting.seed)
    return run
