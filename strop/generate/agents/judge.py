"""Generative judge as an agent: the policy reads a completion with its chain of thought, and writes a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.preferences import asked_of, shown_by
from strop.environments.judging.verdict_questions import ASKED
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class JudgeShown(Agent):
    """Agent for tasks of `Preferences`: the completion to judge is a turn of its own, as in training of reward models.

    Inside a user message, many chat templates would drop the chain of thought of the completion.
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
