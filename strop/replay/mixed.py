"""ReMix's draw (2507.06892): each place of a step falls to attempts of the last few policies with a probability.

Reading: old groups come on top of a step's new ones, in the share that the probability says, or new ones would wait
beyond the lag. Which of the last policies is uniform, so is the choice among its groups, none of which comes twice.
The age of a group is that of the weights it was admitted at, so that it is right with a lag, too.
Papers: remix
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from strop.errors import ConfigurationError
from strop.replay.memory.held_groups import Replaying
from strop.types import Group


@dataclass
class Mixed(Replaying):
    """New groups once, the oldest first, and before version `until` old ones, so that these are a share `old`."""

    old: float = 0.4  # share of old groups in a step, in expectation
    window: int = 2  # versions that an old group may lie behind
    until: int = 0  # from this version on there are new groups alone; 0: never
    seed: int = 0  # of the choice of old ones

    def __post_init__(self) -> None:
        if not 0 <= self.old < 1 or self.window < 1 or self.until < 0:
            raise ConfigurationError(
                f"Mixed needs 0 <= old < 1, window >= 1 and until >= 0, got {self.old}, {self.window} and {self.until}"
            )

    def draw(self, count: int, step: int) -> list[Group] | None:
        if len(self._held) < count:
            return None
        held = self._held
        held.old = {number: group for number, group in held.old.items() if step - group.version <= self.window}
        again = [] if 0 < self.until <= step else self._again(count, step)
        return [*held.take(count, again), *again]

    def _again(self, count: int, step: int) -> list[Group]:
        known = [group for _, group in sorted(self._held.old.items()) if group.version < step]
        random = np.random.default_rng([self.seed, step])
        # how many places fell to old groups before each of the new ones
        wanted = min(int(random.geometric(1 - self.old, count).sum()) - count, len(known))
        if not wanted:
            return []
        sizes = Counter(group.version for group in known)
        chances = np.array([1 / (len(sizes) * sizes[group.version]) for group in known])
        chosen = random.choice(len(known), wanted, replace=False, p=chances / chances.sum())
        return [known[place] for place in sorted(chosen.tolist())]
