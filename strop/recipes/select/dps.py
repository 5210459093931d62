"""DPS: a Markov chain per task predicts which tasks some, but not all, rollouts will solve; GRPO trains on these.

Title: Dynamics-Predictive Sampling for Active RL Finetuning of Large Reasoning Models
Paper: arXiv 2603.10887 (2026)
Claim: The accuracy of oversampling and filtering with far fewer rollouts, in mathematics, planning and visual geometry.
Reading: As released for mathematics: counts decay by 0.7 per version (0.5 for Countdown), groups of 8, clipping 0.2 and
    0.28 with a dual clip at 10, no KL penalty, one mean over all tokens, two minibatches per batch (four for
    Countdown). 256 tasks replace its data set, so that they repeat; every batch is the best of all of them.
Left out: The uncertainty of the state as part of its score, whose weight is 0 in every released script. The loss's
    entropy bonus of 0.001.
Acts: probability_gain > 0 with tasks=16
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.bandit_metrics import contrasts
from strop.control.samplers.support.pending_choices import Filed, PendingChoices
from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.control.seeded_choice import Doubles, highest
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.success import successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Task

# DPS (2603.10887): a chain of three states per task (no rollout solves it, some do, all do), and its next state.
#
# A group shows the state. A transition table per task is learned from the states, and the tasks most likely to be
# solved by some are sampled. Reading: as released, with its scripts' factor 0.7. Idle time is counted in weight
# versions: a group of version v is applied after the idle versions in between, however late it arrives; one that
# arrives after a later group of the same task is applied right after it. States depend on the number of rollouts: keep
# it fixed.

_STATES = 3
_NONE, _SOME, _ALL = range(_STATES)


@dataclass
class Dynamics(Sampler):
    """Sampler of the tasks most likely to be solved by some of their rollouts; a pool is ranked anew for every version.

    `counts` [N, 3, 3] of transitions (to, from) start at one and return there by the share 1 - keep per version.
    """

    envs: tuple[Environment, ...]
    tasks: int = 256  # of each environment, to choose from
    keep: float = 0.7  # share of the counts that is left one version later
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _counts: Doubles = field(init=False, repr=False, compare=False)  # [N, 3, 3]
    _now: Doubles = field(init=False, repr=False, compare=False)  # [N, 3], at the version in `_versions`
    _versions: list[int] = field(init=False, repr=False, compare=False)  # at which each task was last seen
    _shown: tuple[float, float] = field(default=(0.0, 0.0), init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= 1:
            raise ConfigurationError(f"Dynamics needs keep from 0 to 1, got {self.keep}")
        self._pool = Pool(self.envs, self.tasks)
        size = len(self._pool)
        self._counts = np.ones((size, _STATES, _STATES))
        self._now = np.full((size, _STATES), 1 / _STATES)
        self._versions = [-1] * size

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._pool.task(self._pending.next(step, lambda number: self._ranked(step, number)))

    def observe(self, group: Group) -> None:
        place, (right, count) = self._pool.place(group.task), successes(group)
        if place is not None and count:
            uneven = contrasts(group).any()
            self._filed.add(group, place, _SOME if uneven else _ALL if right > count / 2 else _NONE)

    def probabilities(self, step: int) -> Doubles:
        """State probabilities of each task at this version: [N, 3]."""
        for version, _, place, state in self._filed.take():
            self._see(int(place), int(state), int(version))
        counts, now = self._counts.copy(), self._now.copy()
        idle = np.maximum(step - 1 - np.array(self._versions), 0)
        for passed in range(int(idle.max())):
            waiting = idle > passed
            counts[waiting], now[waiting] = self._rested(counts[waiting], now[waiting])
        return _advanced(counts, now)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: mean probability that some rollouts solve a task of the pool, and the best one's distance from
        it.
        """
        mean, first = self._shown
        return {"solved_by_some": mean, "probability_gain": first - mean}

    def _ranked(self, step: int, number: int) -> list[int]:
        probabilities = self.probabilities(step)[:, _SOME]
        self._shown = float(probabilities.mean()), float(probabilities.max())
        return highest(probabilities, len(probabilities), (self.seed, number))

    def _see(self, place: int, state: int, version: int) -> None:
        counts, before = self._counts[place : place + 1], self._now[place : place + 1]
        for _ in range(version - 1 - self._versions[place]):
            counts, before = self._rested(counts, before)
        moves = np.zeros_like(counts)
        moves[0, state] = (before * _transitions(counts)[:, state])[0]
        self._counts[place] = (self._faded(counts) + moves / moves.sum())[0]
        self._now[place] = np.eye(_STATES)[state]
        self._versions[place] = max(version, self._versions[place])

    def _rested(self, counts: Doubles, now: Doubles) -> tuple[Doubles, Doubles]:
        """Counts and state one version later without an observation: [N, 3, 3], [N, 3]."""
        return self._faded(counts), _advanced(counts, now)

    def _faded(self, counts: Doubles) -> Doubles:
        return self.keep * counts + (1 - self.keep)

    def state(self) -> dict[str, Any]:
        return {
            "pending": self._pending.state(),
            "filed": self._filed.state(),
            "counts": self._counts.tolist(),
            "now": self._now.tolist(),
            "versions": list(self._versions),
            "shown": list(self._shown),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._pending.restore(state["pending"])
        self._filed.restore(state["filed"])
        self._counts, self._now = np.array(state["counts"]), np.array(state["now"])
        self._versions = [int(version) for version in state["versions"]]
        self._shown = (float(state["shown"][0]), float(state["shown"][1]))


def _transitions(counts: Doubles) -> Doubles:
    """Probabilities of the next state (rows) given the current one (columns): [N, 3, 3]."""
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _advanced(counts: Doubles, now: Doubles) -> Doubles:
    """State probabilities one version later: [N, 3]."""
    return np.asarray(np.einsum("nji,ni->nj", _transitions(counts), now))


def dps(
    setting: Setting = Setting(env="countdown:4"),
    tasks: int = OfEndless(256),  # of each environment, to choose from; all of a table
    keep: float = 0.7,  # share of a task's counts that is left one version later
) -> Run:
    """GRPO on tasks that are predicted to be solved by some rollouts."""
    losses = (Clip(0.2, 0.28, dual=10.0),)
    run = setting.run("dps", GroupStandard(), losses, minibatches=min(2, setting.groups_per_step))
    run.sampler = Dynamics(run.envs, covering(run.envs, tasks), keep, setting.seed)
    return run
