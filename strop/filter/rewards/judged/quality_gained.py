"""Quality gained by each turn (2603.16839): what a work is worth after a turn minus what it was worth before.

Reading: a component that fails fails the attempt, where the release scores it 0 and lets it weigh. A turn failed where
the world answered with an error; the last one of an attempt that finished has finished the work.
Papers: inverse-spec
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid, Span
from strop.roles import Reward
from strop.types import Group, Outcome, Trajectory

_WORKED, _FAILED, _FINISHED = 0.01, -0.02, 0.1  # beside the quality, for each turn


@dataclass(frozen=True)
class QualityGained(Reward):
    """Pays Q(after turn k) - Q(before) at the end of turn k, Q the weighted mean of `components`, and a little beside.

    The gains add up to the quality of the whole attempt, for it begins with nothing.
    """

    components: tuple[Reward, ...]  # each from 0 to 1; their weights are those of the mean
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where its components are

    def __post_init__(self) -> None:
        if not self.components or not all(each.weight > 0 for each in self.components):
            raise ConfigurationError(f"QualityGained needs components with weights > 0, got {self.components}")

    async def __call__(self, group: Group) -> list[Paid]:
        return [await self._mark(group, attempt) for attempt in group.trajectories]

    async def _mark(self, group: Group, attempt: Trajectory) -> Paid:
        cut = [_until(attempt, count) for count in range(1, len(attempt.turns) + 1)]
        worth = await self._quality(replace(group, trajectories=cut)) if cut else []
        attempt.facts["quality"] = worth[-1] if worth else 0.0
        gains = [after - before for before, after in zip([0.0, *worth], worth, strict=False)]
        spans = [
            Span(number, 0, len(turn.message.content), gain + _beside(attempt, number))
            for number, (turn, gain) in enumerate(zip(attempt.turns, gains, strict=True))
        ]
        written = [span for span in spans if len(attempt.turns[span.turn].whole)]
        return Paid(sum(span.value for span in spans if span not in written), tuple(written))

    async def _quality(self, group: Group) -> list[float]:
        """Of each attempt of a group."""
        told = [(each.weight, await _marks(each, group)) for each in self.components]
        total = sum(weight for weight, _ in told)
        return [
            sum(weight * marks[place] for weight, marks in told) / total for place in range(len(group.trajectories))
        ]


def _until(attempt: Trajectory, count: int) -> Trajectory:
    """The first turns alone; what is noted about them is not noted about the whole."""
    return replace(attempt, turns=attempt.turns[:count], turn_rewards=attempt.turn_rewards[:count], facts={})


async def _marks(component: Reward, group: Group) -> Sequence[float]:
    returned = component(group)
    marks = await returned if inspect.isawaitable(returned) else returned
    return [mark.end + sum(span.value for span in mark.spans) if isinstance(mark, Paid) else mark for mark in marks]


def _beside(attempt: Trajectory, number: int) -> float:
    """For a turn that worked, failed, or finished the work."""
    if number + 1 == len(attempt.turns):
        return _FINISHED if attempt.outcome is Outcome.FINISHED else _FAILED
    said = " ".join(message.content for message in attempt.turns[number + 1].told)
    return _FAILED if said.lower().lstrip().startswith("error") else _WORKED
