"""DUMP (2504.09710): worlds are arms, drawn by how unevenly their latest attempts ended and by how few there were.

Reading: an arm is a world of one level, an advantage the outcome against its siblings in units of their spread. The
latest attempts are those of the latest versions, so nothing depends on which group was done first. What came in counts
from the next version on, dropped groups too. The release lets rewards of held-out tasks in, which this does not.
Papers: dump
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.control.samplers.support.bandit_arms import Shelves
from strop.control.samplers.support.bandit_metrics import arm_figures
from strop.control.samplers.support.deferred_updates import Filed
from strop.control.samplers.support.reward_spread import contrasts
from strop.control.seeded_choice import Doubles, drawn, softmax
from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Group, Metrics, Task


@dataclass
class UpperConfidence(Sampler):
    """An arm's value is the mean |A| of its last `window` attempts + sqrt(2 ln(N + 1) / (n + 1)).

    n is how many attempts it ever had, N how many all had. It is drawn with the probability softmax(value /
    temperature).
    """

    worlds: tuple[World, ...]
    window: int = 300  # attempts of each arm, not groups
    temperature: float = 0.1  # the lower, the more the best arm is preferred
    seed: int = 0
    _shelves: Shelves = field(init=False, repr=False, compare=False)
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _latest: list[list[list[float]]] = field(default_factory=list, init=False, repr=False, compare=False)
    _counts: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    _step: int = field(default=0, init=False, repr=False, compare=False)  # up to which it has learned
    _draws: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.window < 1 or self.temperature <= 0:
            raise ConfigurationError(
                f"UpperConfidence needs window >= 1 and temperature > 0, got {self.window} and {self.temperature}"
            )
        self._shelves = Shelves(self.worlds)
        self._latest, self._counts = [[] for _ in self.worlds], [0] * len(self.worlds)

    def next(self, step: int, belief: Belief) -> Task:
        if step != self._step:
            self._step = step
            self._update()
        self._draws += 1
        return self._shelves.take(drawn(self.chances(), 1, (self.seed, self._draws))[0])

    def chances(self) -> Doubles:
        """Of each arm in the next draw."""
        return softmax(self.values(), self.temperature)

    def values(self) -> list[float]:
        """Of each arm: what it showed, and what it may still show."""
        wide = 2 * math.log(sum(self._counts) + 1)
        shown = [sum(size for *_, size in latest) / max(len(latest), 1) for latest in self._latest]
        return [mean + math.sqrt(wide / (count + 1)) for mean, count in zip(shown, self._counts, strict=True)]

    def observe(self, group: Group) -> None:
        if (arm := self._shelves.arm(group.task)) is not None:
            for place, size in enumerate(contrasts(group)):
                self._filed.add(group, place, arm, float(size))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how arms are drawn now."""
        return arm_figures(self.worlds, self.chances())

    def _update(self) -> None:
        for version, number, place, arm, size in self._filed.take():
            latest = self._latest[int(arm)]
            latest.append([version, number, place, size])
            self._counts[int(arm)] += 1
        self._latest = [sorted(latest)[-self.window :] for latest in self._latest]

    def state(self) -> dict[str, Any]:
        return {
            "shelves": self._shelves.state(),
            "filed": self._filed.state(),
            "latest": [[list(row) for row in latest] for latest in self._latest],
            "counts": list(self._counts),
            "step": self._step,
            "draws": self._draws,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._shelves.restore(state["shelves"])
        self._filed.restore(state["filed"])
        self._latest = [[list(row) for row in latest] for latest in state["latest"]]
        self._counts = [int(count) for count in state["counts"]]
        self._step, self._draws = int(state["step"]), int(state["draws"])
