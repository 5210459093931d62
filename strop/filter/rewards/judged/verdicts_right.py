"""TRM's reward for the judge itself (2509.25409): its verdicts against the true ones, sentence by sentence.

How large the bonus for a caught error is was not found: one half is ours.
Papers: trm
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError, RewardError
from strop.filter.sentences import SentenceVerdict, verdicts_in
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class VerdictsRight(Reward):
    """The mean over sentences of 1/2 for faithfulness told right, 1/2 for correctness, and `bonus` for an error caught.

    The true verdicts are the task's answer, in the form that the policy is asked for. A sentence that is not judged, or
    twice, earns nothing.
    """

    bonus: float = 0.5  # for a sentence that is incorrect and called so
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.bonus >= 0:
            raise ConfigurationError(f"VerdictsRight needs bonus >= 0, got {self.bonus}")

    def __call__(self, group: Group) -> list[float]:
        if not (truth := verdicts_in(group.task.answer)):
            raise RewardError(f"the answer of task {group.task.id} holds no verdicts, as in 1: faithful; why; correct")
        return [self._mark(truth, verdicts_in(attempt.reply)) for attempt in group.trajectories]

    def _mark(self, truth: dict[int, SentenceVerdict], said: dict[int, SentenceVerdict]) -> float:
        both = [(true, said[number]) for number, true in truth.items() if number in said]
        return sum(self.earned(true, told) for true, told in both) / len(truth)

    def earned(self, true: SentenceVerdict, told: SentenceVerdict) -> float:
        """By one sentence."""
        halves = (true.is_faithful == told.is_faithful) / 2 + (true.is_correct == told.is_correct) / 2
        return halves + self.bonus * (not true.is_correct and not told.is_correct)
