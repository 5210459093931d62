"""ALP-GMM curriculum (1910.07224): a Gaussian mixture samples tasks with high absolute learning progress.

Reading: the space of tasks has two axes, the name of an environment and its level, each from 0 to 1; the tasks of an
environment are
one point, so the nearest task before is the last one of the same environment, or of the nearest one that was tried.
What a
draw says is clipped to the space and taken to the nearest environment. Groups are folded in when weights have moved, in
the order of version and admission.
Papers: alp-gmm
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.gaussian_mixture import Gaussians, fitted
from strop.control.samplers.support.pending_choices import Filed
from strop.control.seeded_choice import Doubles, drawn
from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.success import successes
from strop.types import Group, Metrics, Task

_COMPONENTS = range(2, 11)


@dataclass
class LearningProgress(Sampler):
    """Gaussians are sampled in proportion to their mean |change of the success rate|, then a point within one.

    The mixture is refitted to (point, change) of the last `window` groups after every `window` groups; before the first
    fit, and for the share `others` of samples, environments are uniform.
    """

    envs: tuple[Environment, ...]
    window: int = 250  # groups
    others: float = 0.2  # share of draws from anywhere
    seed: int = 0
    _arms: BanditArms = field(init=False, repr=False, compare=False)
    _places: Doubles = field(init=False, repr=False, compare=False)  # [W, 2]
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _last: dict[int, float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )  # success by environment
    _changes: list[tuple[int, float]] = field(default_factory=list, init=False, repr=False, compare=False)
    _since: int = field(default=0, init=False, repr=False, compare=False)  # groups since the last fit
    _fit: Gaussians | None = field(default=None, init=False, repr=False, compare=False)
    _step: int = field(default=0, init=False, repr=False, compare=False)
    _draws: int = field(default=0, init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.window < 2 or not 0 <= self.others <= 1:
            raise ConfigurationError(
                f"LearningProgress needs window >= 2 and others from 0 to 1, got {self.window} and {self.others}"
            )
        self._arms, self._places = BanditArms(self.envs), places_of(self.envs)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        if step != self._step:
            self._step = step
            self._update()
        self._draws += 1
        return self._arms.take(self._arm())

    def observe(self, group: Group) -> None:
        arm, (right, count) = self._arms.arm(group.task), successes(group)
        if arm is not None and count:
            self._filed.add(group, arm, right / count)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much success rates moved, and of how many Gaussians the mixture is."""
        changes = [change for _, change in self._changes]
        count = 0 if self._fit is None else len(self._fit.weights)
        return {"learning_progress": float(np.mean(changes)) if changes else 0.0, "gaussians": float(count)}

    def _arm(self) -> int:
        random = np.random.default_rng([self.seed, self._draws, 0])
        if self._fit is None or random.random() < self.others:
            return int(random.integers(len(self.envs)))
        gains = np.maximum(self._fit.means[:, 2], 0.0)
        weights = gains if gains.any() else np.ones_like(gains)
        chosen = drawn(weights, 1, (self.seed, self._draws, 1))[0]
        spread = np.linalg.cholesky(self._fit.covariances[chosen, :2, :2])
        place = np.clip(self._fit.means[chosen, :2] + spread @ random.standard_normal(2), 0.0, 1.0)
        return self._nearest(place, range(len(self.envs)))

    def _update(self) -> None:
        for _, _, arm, share in self._filed.take():
            if self._last:
                before = self._last[self._nearest(self._places[int(arm)], sorted(self._last))]
                self._changes.append((int(arm), abs(share - before)))
                self._since += 1
            self._last[int(arm)] = share
        del self._changes[: -self.window]
        if self._since >= self.window:
            points = np.array([[*self._places[arm], change] for arm, change in self._changes])
            self._fit, self._since = fitted(points, _COMPONENTS, (self.seed, self._draws, 2)), 0

    def _nearest(self, place: Doubles, arms: Sequence[int]) -> int:
        return min(arms, key=lambda arm: float(np.square(self._places[arm] - place).sum()))

    def state(self) -> dict[str, Any]:
        fit = self._fit
        return {
            "arms": self._arms.state(),
            "filed": self._filed.state(),
            "last": [[arm, share] for arm, share in sorted(self._last.items())],
            "changes": [list(change) for change in self._changes],
            "since": self._since,
            "fit": None if fit is None else [fit.weights.tolist(), fit.means.tolist(), fit.covariances.tolist()],
            "step": self._step,
            "draws": self._draws,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._arms.restore(state["arms"])
        self._filed.restore(state["filed"])
        self._last = {int(arm): float(share) for arm, share in state["last"]}
        self._changes = [(int(arm), float(change)) for arm, change in state["changes"]]
        self._since, self._step, self._draws = (int(state[name]) for name in ("since", "step", "draws"))
        self._fit = None if state["fit"] is None else Gaussians(*(np.array(each) for each in state["fit"]))


def places_of(envs: Sequence[Environment]) -> Doubles:
    """Where each environment stands: its name's place among the names and its level's between the levels, from 0 to
    1.
    """
    names = sorted({env.name for env in envs})
    raw = np.array([[names.index(env.name), env.level] for env in envs], dtype=np.float64)
    low = raw.min(axis=0)
    return np.asarray((raw - low) / np.maximum(raw.max(axis=0) - low, 1.0))
