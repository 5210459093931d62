"""Forced completion: a given word in place of a sampled completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.verdict_questions import ASKED
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class ForcedCompletion(Agent):
    """Agent whose completion is `word` with reward `paid`; the environment is not used.

    If `before` is set, even to an empty string, that text comes first as a completion, followed by the question for the
    word, as in `environments/judging/verdict_questions.py`.
    """

    word: str
    paid: float = 0.0
    before: str | None = None

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if self.before is not None:
            dialogue.say(Message("assistant", self.before))
            dialogue.hear((Message("user", ASKED),))
        dialogue.say(Message("assistant", self.word))
        return (self.paid,) if self.before is None else (0.0, self.paid)
