"""GDRO's prompts (2601.19280): credit in the bins of tasks that go worst is made larger, by multiplicative weights.

Nothing is drawn more often; advantages are scaled. Readings: the loss of a bin is the share of attempts that are wrong.
The paper's own, a clipped surrogate, is 0 for every task as long as the policy is the one that sampled. Weights are
relative to their mean over the bins, which differs from the paper's by a factor common to all; bins come from what the
belief foresaw, so no task needs a window of its own.
Papers: gdro
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.control.pass_bins import pass_bin
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.success import success
from strop.types import Group, Metrics


@dataclass
class BinWeighted(Advantage):
    """What `inner` gives, times min(B q, most); q = (1 - mixed) * w / sum w + mixed / B, w = exp(strength * S).

    S of a bin moves by `rate` towards its mean loss in each draw, after credit was given.
    """

    inner: Advantage
    strength: float = 0.65  # of a bin's loss in its weight
    mixed: float = 0.01  # share of an even weighting
    rate: float = 0.12  # of the latest draw in a bin's loss
    most: float = 15.0  # weight
    bins: int = 10  # of how likely one of `tries` attempts is right
    tries: int = 8  # attempts of which one shall be right
    _losses: list[float] = field(default_factory=list, init=False, repr=False, compare=False)  # S of each bin
    _used: float = field(default=0.0, init=False, repr=False, compare=False)  # mean |weight - 1| of the last draw

    def __post_init__(self) -> None:
        if not 0 <= self.mixed <= 1 or not 0 < self.rate <= 1 or self.bins < 1 or self.tries < 1 or self.most <= 0:
            raise ConfigurationError(
                f"BinWeighted needs mixed from 0 to 1, 0 < rate <= 1, bins and tries >= 1 and most > 0, got {self}"
            )
        self._losses = [0.0] * self.bins

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        weights, places = self.weights(), [pass_bin(group, self.bins, self.tries) for group in groups]
        for group, place in zip(groups, places, strict=True):
            for attempt in group.trajectories:
                if attempt.advantages is not None:
                    attempt.advantages = (attempt.advantages * weights[place]).astype(np.float32)
        self._used = float(np.mean([abs(weights[place] - 1) for place in places])) if places else 0.0
        self._update(groups, places)

    def weights(self) -> NDArray[np.float64]:
        """Of each bin's credit: [B]."""
        powers = np.exp(self.strength * np.array(self._losses))
        return np.asarray(np.minimum((1 - self.mixed) * powers / powers.mean() + self.mixed, self.most))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing more; says how far weights were from 1, and how far apart they are now."""
        return {"bin_weighting": self._used, "bin_spread": float(np.ptp(self.weights()))}

    def _update(self, groups: Sequence[Group], places: Sequence[int]) -> None:
        for place, before in enumerate(self._losses):
            found = [
                1 - success(attempt)
                for group, of in zip(groups, places, strict=True)
                for attempt in group.own
                if of == place
            ]
            if found:
                self._losses[place] = before + self.rate * (float(np.mean(found)) - before)

    def state(self) -> dict[str, Any]:
        return {"losses": list(self._losses)}

    def restore(self, state: dict[str, Any]) -> None:
        self._losses = [float(loss) for loss in state["losses"]]
