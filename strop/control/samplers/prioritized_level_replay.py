"""Prioritized Level Replay (2010.03934): tasks with high scores are replayed more often, plus stale ones.

Reading: a task's score is the mean |A| of its latest group, where the paper has that of a critic's errors. Latest and
stale go by versions of the weights, so a late group never takes the place of a newer one. No task comes twice under the
same weights before all others came.
Papers: prioritized-level-replay
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.bandit_metrics import contrasts, preference
from strop.control.samplers.support.task_pool import Pool
from strop.control.seeded_choice import Doubles, drawn, highest
from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import Group, Metrics, Task


@dataclass
class LevelReplay(Sampler):
    """P = (1 - stale) * P_score + stale * P_age over tasks that were seen.

    P_score is proportional to (1 / rank of the score)^(1 / softness), P_age to versions since the last visit. New tasks
    are sampled until the share `start` of the pool was seen; from then on a seen task is replayed with a probability
    equal to the share seen.
    """

    envs: tuple[Environment, ...]
    tasks: int = 256  # of each environment, to choose from
    softness: float = 0.1  # the lower, the more the highest score is preferred
    stale: float = 0.1  # share of what was not seen for long
    start: float = 1.0  # share of the pool that is seen first
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _seen: dict[int, tuple[int, int, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _taken: int = field(default=0, init=False, repr=False, compare=False)  # new tasks so far: the places below
    _tried: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # under these weights
    _step: int = field(default=0, init=False, repr=False, compare=False)
    _draws: int = field(default=0, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.softness <= 0 or not 0 <= self.stale <= 1 or not 0 < self.start <= 1:
            raise ConfigurationError(
                "LevelReplay needs softness > 0, stale from 0 to 1 and 0 < start <= 1, "
                f"got {self.softness}, {self.stale} and {self.start}"
            )
        self._pool = Pool(self.envs, self.tasks)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        if step != self._step:
            self._step, self._tried = step, []
        self._draws += 1
        place = self._again(step) if self._is_again() else self._new()
        self._tried.append(place)
        return self._pool.task(place)

    def observe(self, group: Group) -> None:
        place, sizes = self._pool.place(group.task), contrasts(group)
        if place is not None and len(sizes):
            found = (group.version, group.number, float(sizes.mean()))
            self._seen[place] = max(found, self._seen.get(place, found))

    def probabilities(self, step: int, places: Sequence[int]) -> Doubles:
        """Of tasks that were seen, to come again: [N]."""
        scores = [self._seen[place][2] for place in places]
        ranks = np.empty(len(places))
        ranks[highest(scores, len(places), (self.seed, self._draws, 0))] = np.arange(1, len(places) + 1)
        by_score = (1 / ranks) ** (1 / self.softness)
        ages = np.array([step - self._seen[place][0] for place in places], dtype=np.float64)
        by_age = ages / ages.sum() if ages.any() else np.full(len(places), 1 / len(places))
        return np.asarray((1 - self.stale) * by_score / by_score.sum() + self.stale * by_age)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much of the pool was seen, and how far a choice among it is from an even one."""
        places = sorted(self._seen)
        told = preference(self.probabilities(self._step, places)) if places else 0.0
        return {"seen_share": len(places) / len(self._pool), "preference": told}

    def _is_again(self) -> bool:
        share = self._taken / len(self._pool)
        if not self._waiting() or share < self.start:
            return False
        return share >= 1 or float(np.random.default_rng([self.seed, self._draws, 1]).random()) < share

    def _waiting(self) -> list[int]:
        """What was seen and not yet tried under these weights."""
        return [place for place in sorted(self._seen) if place not in self._tried]

    def _again(self, step: int) -> int:
        places = self._waiting()
        return places[drawn(self.probabilities(step, places), 1, (self.seed, self._draws, 2))[0]]

    def _new(self) -> int:
        """The next of the pool; when all were taken and none may come again yet, from its start."""
        self._taken += 1
        return (self._taken - 1) % len(self._pool)

    def state(self) -> dict[str, Any]:
        return {
            "seen": [[place, *known] for place, known in sorted(self._seen.items())],
            "taken": self._taken,
            "tried": list(self._tried),
            "step": self._step,
            "draws": self._draws,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._seen = {int(place): (int(v), int(number), float(score)) for place, v, number, score in state["seen"]}
        self._taken, self._step, self._draws = int(state["taken"]), int(state["step"]), int(state["draws"])
        self._tried = [int(place) for place in state["tried"]]
