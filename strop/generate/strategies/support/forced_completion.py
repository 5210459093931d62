"""One word said in place of the policy, by whoever knows what it ought to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.verdict_questions import ASKED
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class Saying(Agent):
    """Says `word` and is paid what its speaker knows; the environment is not asked.

    Where it says `before` first, be it nothing, it is asked for the word afterwards, as
    `environments/judging/verdict_questions.py` has it.
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
