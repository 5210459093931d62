"""Memory-R2's two roles (2605.21768): one model takes facts out of a session, and puts them into the memory.

Papers: memory-r2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.bundled.sessions import extractor_reads, manager_reads, split_message
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.text.sanitize import quoted
from strop.types import Message, Origin, Task

EXTRACTOR, MANAGER = "extractor", "manager"


@dataclass(frozen=True)
class ExtractAndManage(Agent):
    """Two turns for each session, each in a context of its own: the extractor reads the session, the manager the
    memory and what was extracted. What the manager says is the memory, and is paid what the session earned.
    """

    origin: ClassVar[Origin] = Origin.POLICY

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("ExtractAndManage begins at the beginning of a conversation")
        await environment.reset(task)
        content, paid = task.messages[-1].content, list[float]()
        while True:
            memory, session = split_message(content)
            new = await _said(dialogue, extractor_reads(session), EXTRACTOR)
            if new is None:
                break
            managed = await _said(dialogue, manager_reads(memory, quoted(final_answer(new.content))), MANAGER)
            if managed is None:
                paid.append(0.0)
                break
            answer = await environment.step(managed)
            paid += [0.0, answer.reward or 0.0]
            if answer.done:
                break
            content = answer.messages[-1].content
        return tuple(paid)


async def _said(dialogue: Dialogue, messages: tuple[Message, ...], voice: str) -> Message | None:
    """A role's word; None where nothing more can be said."""
    dialogue.restart(messages, voice)
    return None if dialogue.is_cut else await dialogue.reply()
