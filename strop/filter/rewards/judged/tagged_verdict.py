"""MSRL's reward for a judge (2603.25108): its label is right, its tags are in order, and it knows what it judges.

In the release a bare label without its tags is right, tags may come in any order and number, and the 0.2 for a type is
multiplied by 0.2 again. Here a label counts between its tags alone, each tag once and in order, and 0.2 is 0.2.
Papers: msrl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.pairwise import TEXT, PairVerdict, told, truth_of
from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class TaggedVerdict(Reward):
    """1 for the label of the better reply, `layout` for tags in order, `kind` for the type of what captions stand for.

    The last two are facts of an attempt, too: `laid_out` and, where there is a type to tell, `typed`.
    """

    layout: float = 0.2
    kind: float = 0.0
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if min(self.layout, self.kind) < 0 or not self.layout + self.kind < 1:
            raise ConfigurationError(
                "TaggedVerdict needs layout and kind >= 0 that are less than a right label together, which is worth 1; "
                f"got {self.layout} and {self.kind}"
            )

    def __call__(self, group: Group) -> list[float]:
        truth = truth_of(group.task)
        return [self._mark(attempt, truth) for attempt in group.trajectories]

    def _mark(self, attempt: Trajectory, truth: PairVerdict) -> float:
        said = told(attempt.reply)
        attempt.facts["laid_out"] = float(said.is_laid_out)
        mark = (said.label == truth.label) + self.layout * said.is_laid_out
        if truth.kind == TEXT:
            return mark
        attempt.facts["typed"] = float(said.kind == truth.kind)
        return mark + self.kind * attempt.facts["typed"]
