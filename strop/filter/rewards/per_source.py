"""One run over many kinds of tasks (V-Triune, 2505.18129): each says who verifies it, and what its layout weighs.

Papers: v-triune
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.capabilities import Learns, outermost
from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.types import Group, Metrics


@dataclass(frozen=True)
class Verifier:
    """How attempts at tasks of one source are judged: accuracy * (what `check` says) + (1 - accuracy) * layout."""

    source: str  # the name of a world
    check: Reward  # from 0 to 1
    accuracy: float = 0.9  # the rest is layout's


@dataclass(frozen=True)
class PerSource(Reward):
    """What the verifier of the task's source says; a source without one is refused."""

    verifiers: tuple[Verifier, ...]
    layout: Reward  # from 0 to 1
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where those it holds are
    name: ClassVar[str] = "per_source"
    teaches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for each in self.verifiers:
            if not 0 <= each.accuracy <= 1:
                raise ConfigurationError(f"a verifier's accuracy weighs from 0 to 1, got {each.accuracy}")

    def __call__(self, group: Group) -> list[float]:
        verifier = self._verifier(group.task.source)
        pairs = zip(plain_marks(self, verifier.check, group), plain_marks(self, self.layout, group), strict=True)
        return [verifier.accuracy * right + (1 - verifier.accuracy) * layout for right, layout in pairs]

    def _verifier(self, source: str) -> Verifier:
        found = next((each for each in self.verifiers if each.source == source), None)
        if found is None:
            known = ", ".join(each.source for each in self.verifiers)
            raise ConfigurationError(f"PerSource has no verifier of {source!r}, only of {known}")
        return found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Rewards of the draw by source, and what verifiers say of their own groups; nothing is remembered here."""
        told: Metrics = {}
        for _, part in outermost(self.layout, Learns):
            told |= part.learn(groups)
        for verifier in self.verifiers:
            own = [group for group in groups if group.task.source == verifier.source]
            marks = [attempt.reward for group in own for attempt in group.scored]
            if marks:
                told[f"reward_by/{verifier.source}"] = sum(marks) / len(marks)
            for _, part in outermost(verifier, Learns):
                told |= part.learn(own)
        return told
