"""Multi-agent team in one rollout: each role writes one message, and the last role acts in the environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.generate.agents.support.episode_loop import HINTED, acted, payments, speaker, told_by_others
from strop.roles import Agent, Dialogue, Episode, LLMClient
from strop.types import Origin, Task


@dataclass(frozen=True)
class Team(Agent):
    """Team of roles, each with its own policy name and context, which reads the question and all earlier roles'
    messages.

    With one model the roles are policy names of one policy; with `EnginePerPolicy` and `TrainerPerPolicy` each role has
    its own weights; other models may play all roles but the last. The environment's reward goes to the team: it is
    recorded at the last role's turns.
    """

    roles: tuple[str, ...] = ("planner", "critic", "actor")  # their policy names, in speaking order
    asks: str = HINTED  # prompt of a role after another one has spoken
    max_turns: int = 8  # of the last role, with the environment
    models: dict[str, LLMClient] = field(default_factory=dict)  # who plays a role in place of the policy

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if not self.roles or len(set(self.roles)) < len(self.roles) or "{said}" not in self.asks or self.max_turns < 1:
            raise ConfigurationError(
                f"Team needs different roles, {{said}} in asks and max_turns >= 1, got {self.roles}, {self.asks!r} and "
                f"{self.max_turns}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("Team starts at the prompt: use a strategy without rollouts continued midway")
        await episode.reset(task)
        said: list[str] = []
        for role in self.roles[:-1]:
            talk = speaker(dialogue, told_by_others(task, said, self.asks), role, self.models)
            if not talk.is_cut:
                said.append((await talk.completion()).content)
        dialogue.restart(told_by_others(task, said, self.asks), self.roles[-1])
        aside = sum(turn.sampling.policy_name != self.roles[-1] for turn in dialogue.turns)
        return payments(await acted(dialogue, episode, self.max_turns), aside)
