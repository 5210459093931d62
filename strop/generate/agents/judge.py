"""A completion that a task shows is read as it was said, thoughts included, before the policy says what it thinks of
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.preferences import asked_of, shown_by
from strop.environments.judging.verdict_questions import ASKED
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class JudgeShown(Agent):
    """For tasks of `Preferences`: the completion is a turn of its own, as where verdicts are learned and asked for.

    Many templates show of earlier completions only what stands behind their thoughts: the task's own messages would
    hide what there is to judge.
    """

    origin: ClassVar[Origin] = Origin.POLICY

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await episode.reset(task)
        dialogue.restart(asked_of(task))
        dialogue.say(Message("assistant", shown_by(task)))
        dialogue.hear((Message("user", ASKED),))
        if dialogue.is_cut:
            return (0.0,)  # no room for a verdict
        answer = await episode.step(await dialogue.completion())
        return 0.0, answer.reward or 0.0
