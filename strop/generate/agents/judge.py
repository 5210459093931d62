"""Judge of a completion shown by the task: the policy reads it whole, thoughts included, and gives a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.preferences import asked_of, shown_by
from strop.environments.judging.verdict_questions import ASKED
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class JudgeShown(Agent):
    """For tasks of `Preferences`: the completion is a turn of its own, as in training and use of reward models.

    Within the task's messages, many templates would drop the thoughts of the completion to be judged.
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
