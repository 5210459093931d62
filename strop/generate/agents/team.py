"""Several roles in one rollout: some speak once to each other, the last one acts in the environment with what they
said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.generate.agents.support.episode_loop import acted, payments, told_by_others
from strop.roles import Agent, Dialogue, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class Team(Agent):
    """Each role speaks in its own policy name and context, and reads the question behind what all before it said.

    With one model the roles are policy names of one policy; with `EnginePerPolicy` and `TrainerPerPolicy` each role has
    weights of its own. What the environment pays is paid to the team: it stands at the last role's turns.
    """

    roles: tuple[str, ...] = ("planner", "critic", "actor")  # their policy names, in the order in which they speak
    asks: str = "{question} hint: {said}"  # what a role reads once another has spoken
    max_turns: int = 8  # of the last role, with the environment

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if not self.roles or len(set(self.roles)) < len(self.roles) or "{said}" not in self.asks or self.max_turns < 1:
            raise ConfigurationError(
                f"Team needs different roles, {{said}} in asks and max_turns >= 1, got {self.roles}, {self.asks!r} and "
                f"{self.max_turns}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("Team begins at the beginning: use a strategy that does not go on from a middle")
        await episode.reset(task)
        said: list[str] = []
        for role in self.roles[:-1]:
            talk = dialogue.aside(told_by_others(task, said, self.asks), role)
            if not talk.is_cut:
                said.append((await talk.completion()).content)
        dialogue.restart(told_by_others(task, said, self.asks), self.roles[-1])
        return payments(await acted(dialogue, episode, self.max_turns), len(said))
