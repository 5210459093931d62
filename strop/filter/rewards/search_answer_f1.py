"""Search reward of AutoRefine (2505.11277): F1 of the answer, or a small reward if refinements contain the answer.

Readings: a refinement is the chain of thought of a completion after a search result; all of them count together. The
right answer must occur in them as whole words, where the release looks for a substring. A rollout that ends without an
answer earns nothing.

Papers: autorefine
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN, between, final_answer
from strop.roles import Reward
from strop.text.overlap import contains, token_f1
from strop.types import Group, Outcome, Rollout, ScoreRange


@dataclass(frozen=True)
class Refined(Reward):
    """F1 of the answer, or `found` if it is 0 and the refinements contain the right answer."""

    found: float = 0.1  # for a right answer that was noted and not given

    grades: ClassVar[ScoreRange | None] = ScoreRange()
    calls_tools: ClassVar[bool] = True
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._score(rollout) for rollout in group.rollouts]

    def _score(self, rollout: Rollout) -> float:
        right, answer = rollout.task.answer, final(rollout)
        read = [turn.message.content for turn in rollout.turns if any(each.role == "tool" for each in turn.told)]
        notes = [note for content in read for note in between(content, OPEN, CLOSE)]
        is_noted = contains(" ".join(notes), right)
        rollout.facts["refined"] = float(is_noted)
        if not answer:
            return 0.0
        return token_f1(answer, right) or (self.found if is_noted else 0.0)


def final(rollout: Rollout) -> str:
    """The answer that a rollout ended with; empty: none."""
    is_ended = rollout.outcome is Outcome.FINISHED and bool(rollout.turns) and not rollout.turns[-1].message.tool_calls
    return final_answer(rollout.completion) if is_ended else ""
