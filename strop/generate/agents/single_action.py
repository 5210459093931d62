"""Single-action agent (Mobile-R1, 2506.20332): one completion from a given state, compared with the expert's action.

Papers: mobile-r1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.actions import action_in
from strop.environments.format.demonstrations import demonstrating
from strop.environments.needs import DEMONSTRATIONS, EnvNeed
from strop.generate.agents.support.episode_loop import where_it_stands
from strop.roles import Agent, Dialogue, Episode
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class OneAction(Agent):
    """Agent with reward 1 for the expert's type of action, and 1 more for its arguments.

    Earlier turns replay the episode up to the given state and earn nothing.
    """

    origin: ClassVar[Origin] = Origin.POLICY
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (DEMONSTRATIONS,)

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        expert = demonstrating(episode)
        before = await where_it_stands(task, dialogue, episode, must_go_on=True)
        if dialogue.is_cut:
            return (0.0,) * len(before)
        wanted = expert.demonstrate()
        completion = await dialogue.completion()
        await episode.step(completion)
        return (*(0.0 for _ in before), paid(completion, wanted))


def paid(completion: Message, wanted: Message) -> float:
    """0, 1 for the kind alone, 2 for the whole action."""
    own, right = action_in(completion), action_in(wanted)
    return float(own.kind == right.kind) + float(own == right)
