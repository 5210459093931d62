"""A small Markov chain per task foretells which ones some rollouts will solve and others not; these are tried.

Title: Dynamics-Predictive Sampling for Active RL Finetuning of Large Reasoning Models
Paper: arXiv 2603.10887 (2026)
Claim: The accuracy of oversampling and filtering with far fewer attempts, in mathematics, planning and visual geometry.
Reading: As released for mathematics: what was counted fades by 0.7 per version (0.5 for Countdown), groups of 8, bounds
    of 0.2 and 0.28 with a dual clip at 10, no KL, one mean over all tokens, two minibatches per batch (four for
    Countdown). 256 tasks stand for its data set, so that they come back; every batch is the best of all of them.
Left out: The uncertainty of the state as part of its score, whose weight is 0 in every released script. The
    loss's bonus of 0.001 on entropy.
Acts: probability_gain > 0 with tasks=16
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.control.samplers.support.deferred_updates import Filed
from strop.control.samplers.support.pending_choices import Hand
from strop.control.samplers.support.reward_spread import contrasts
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import Doubles, highest
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.success import successes
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Task

# DPS (2603.10887): of each task a chain of three states (nobody solves it, some do, all do), and where it stands next.
#
# What a group shows is the state. From it a task's own table of transitions is learned, and the tasks that are most
# likely to be solved by some are tried. Reading: as released with its scripts' factor 0.7. Idle time goes by versions
# of the weights: a group of version v is seen after as many idle versions as lie between, however late it comes; one
# that comes after a later group of the same task is taken as seen right after it. A state depends on how many rollouts
# there were: keep their number fixed.

_STATES = 3
_NONE, _SOME, _ALL = range(_STATES)


@dataclass
class Dynamics(Sampler):
    """The tasks most likely to be solved by some of their rollouts; all of a pool are ranked anew for every version.

    `counts` [N, 3, 3] of transitions (to, from) begin with ones and go back there by the share 1 - keep per version.
    """

    envs: tuple[Environment, ...]
    tasks: int = 256  # of each environment, to choose from
    keep: float = 0.7  # of what was counted, one version later
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _hand: Hand = field(default_factory=Hand, init=False, repr=False, compare=False)
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _counts: Doubles = field(init=False, repr=False, compare=False)  # [N, 3, 3]
    _now: Doubles = field(init=False, repr=False, compare=False)  # [N, 3], of the state at the version in `_versions`
    _versions: list[int] = field(init=False, repr=False, compare=False)  # at which each task was last seen
    _shown: tuple[float, float] = field(default=(0.0, 0.0), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= 1:
            raise ConfigurationError(f"Dynamics needs keep from 0 to 1, got {self.keep}")
        self._pool = Pool(self.envs, self.tasks)
        size = len(self._pool)
        self._counts = np.ones((size, _STATES, _STATES))
        self._now = np.full((size, _STATES), 1 / _STATES)
        self._versions = [-1] * size

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._pool.task(self._hand.next(step, lambda number: self._ranked(step, number)))

    def observe(self, group: Group) -> None:
        place, (right, count) = self._pool.place(group.task), successes(group)
        if place is not None and count:
            uneven = contrasts(group).any()
            self._filed.add(group, place, _SOME if uneven else _ALL if right > count / 2 else _NONE)

    def probabilities(self, step: int) -> Doubles:
        """Of each task, how likely it is in each state at this version: [N, 3]."""
        for version, _, place, state in self._filed.take():
            self._see(int(place), int(state), int(version))
        counts, now = self._counts.copy(), self._now.copy()
        idle = np.maximum(step - 1 - np.array(self._versions), 0)
        for passed in range(int(idle.max())):
            waiting = idle > passed
            counts[waiting], now[waiting] = self._rested(counts[waiting], now[waiting])
        return _moved(counts, now)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how likely a task of the pool is solved by some, and how much likelier those tried first."""
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
        """One version later, nothing seen: [N, 3, 3], [N, 3]."""
        return self._faded(counts), _moved(counts, now)

    def _faded(self, counts: Doubles) -> Doubles:
        return self.keep * counts + (1 - self.keep)

    def state(self) -> dict[str, Any]:
        return {
            "hand": self._hand.state(),
            "filed": self._filed.state(),
            "counts": self._counts.tolist(),
            "now": self._now.tolist(),
            "versions": list(self._versions),
            "shown": list(self._shown),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._hand.restore(state["hand"])
        self._filed.restore(state["filed"])
        self._counts, self._now = np.array(state["counts"]), np.array(state["now"])
        self._versions = [int(version) for version in state["versions"]]
        self._shown = (float(state["shown"][0]), float(state["shown"][1]))


def _transitions(counts: Doubles) -> Doubles:
    """Probabilities of the next state (rows) by the present one (columns): [N, 3, 3]."""
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _moved(counts: Doubles, now: Doubles) -> Doubles:
    """Where a task stands one version later: [N, 3]."""
    return np.asarray(np.einsum("nji,ni->nj", _transitions(counts), now))


def dps(
    setting: Setting = Setting(env="countdown:4"),
    tasks: int = 256,  # of each environment, to choose from
    keep: float = 0.7,  # share of what was counted of a task that is left one version later
) -> Run:
    """GRPO on tasks that are predicted to be solved by some."""
    losses = (Clip(0.2, 0.28, dual=10.0),)
    run = setting.run("dps", GroupStandard(), losses, minibatches=min(2, setting.groups_per_step))
    run.sampler = Dynamics(run.envs, tasks, keep, setting.seed)
    return run
