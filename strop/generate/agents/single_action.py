"""Mobile-R1's single steps (2506.20332): one reply from where the attempt stands, paid by what an expert would do.

Papers: mobile-r1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.actions import action_in
from strop.environments.format.demonstrations import demonstrating
from strop.generate.agents.support.episode_replay import where_it_stands
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class OneAction(Agent):
    """1 for the kind of action that the world's own demonstration takes here, and 1 more for its arguments.

    Turns that are there already bring the world to where it is asked, and are paid nothing.
    """

    origin: ClassVar[Origin] = Origin.POLICY

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        expert = demonstrating(environment)
        before = await where_it_stands(task, dialogue, environment, must_go_on=True)
        if dialogue.is_cut:
            return (0.0,) * len(before)
        wanted = expert.demonstrate()
        reply = await dialogue.reply()
        await environment.step(reply)
        return (*(0.0 for _ in before), paid(reply, wanted))


def paid(reply: Message, wanted: Message) -> float:
    """0, 1 for the kind, 2 for the whole action."""
    own, right = action_in(reply), action_in(wanted)
    return float(own.kind == right.kind) + float(own == right)
