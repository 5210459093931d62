"""SEM's reward (2505.07903): who knows the answer says so and does not search; who does not searches first.

An attempt gives a first answer in its first reply, before any call, and may then search. Readings (the paper's
constants were not found): an answer is known where its F1 is at least a half; a reply without a first answer, or an
attempt without a last one, is of bad form.
Papers: sem
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import final_answer
from strop.environments.tools.said import before_calls
from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.text.token_f1 import token_f1
from strop.types import Group, Outcome, Trajectory


@dataclass(frozen=True)
class SearchOrAnswer(Reward):
    """S(first) where it is known and nothing was searched; S(last) where it is not and something was; else 0."""

    known: float = 0.5  # F1 from which on an answer is known

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.known <= 1:
            raise ConfigurationError(f"SearchOrAnswer needs known above 0 and at most 1, got {self.known:g}")

    def __call__(self, group: Group) -> list[float]:
        return [self._mark(attempt) for attempt in group.trajectories]

    def _mark(self, attempt: Trajectory) -> float:
        if not attempt.turns:
            return 0.0
        replies, right = [turn.message for turn in attempt.turns], attempt.task.answer
        first, last = final_answer(before_calls(replies[0])), final_answer(before_calls(replies[-1]))
        has_searched = any(reply.tool_calls for reply in replies)
        knows = token_f1(first, right) >= self.known
        # a policy may say something wrong on purpose, to be paid for a search: this figure would fall
        facts = {"first_right": knows, "searched": has_searched, "needless": knows and has_searched}
        attempt.facts |= {name: float(is_so) for name, is_so in facts.items()}
        is_whole = bool(first and last) and attempt.outcome is Outcome.FINISHED and not replies[-1].tool_calls
        if not is_whole or knows == has_searched:
            return 0.0
        return token_f1(first if knows else last, right)
