"""TRACE's router (2604.05336): an LLM selects a rollout's adapter by skill descriptions, before the first turn.

Reading: an invalid name or a failed router call selects the initial weights; adapters are never mixed. An adapter that
has not been trained yet equals the initial weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError, LLMClientError
from strop.generate.agents.support.episode_loop import acted, payments
from strop.roles import Agent, Dialogue, Episode, LLMClient
from strop.text.llm_prompt import question
from strop.types import Message, Origin, Sampling, Task

_ASKED = "Which of the requirements does the task ask for most? Write its name alone, or none."
_ANSWER = Sampling(temperature=0.0, max_tokens=64)


@dataclass(frozen=True)
class PolicyRouter(Agent):
    """Agent that asks a router for a policy name and plays the episode with it, at most `max_turns` turns."""

    policy_names: tuple[str, ...]
    described: str  # skill of each policy name, one `name: ...` per line
    router: LLMClient | None = None  # None: the initial weights
    max_turns: int = 8  # maximum number of turns of a rollout

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        names = [line.partition(":")[0] for line in self.described.splitlines()]
        if not self.policy_names or names != list(self.policy_names) or self.max_turns < 1:
            raise ConfigurationError(
                f"PolicyRouter needs policy names, a line `name: ...` for each and max_turns >= 1, got "
                f"{list(self.policy_names)}, lines for {names} and {self.max_turns}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError(
                "PolicyRouter cannot continue a prefix: use a strategy that starts from the prompt"
            )
        await episode.reset(task)
        asked = Message("user", question(_ASKED, wanted="chosen", task=prompt_of(task), requirements=self.described))
        picked = (await self._answer(asked, dialogue)).strip()
        num_routing = len(dialogue.turns)
        dialogue.restart(task.messages, picked if picked in self.policy_names else "")
        return payments(await acted(dialogue, episode, self.max_turns), num_routing)

    async def _answer(self, asked: Message, dialogue: Dialogue) -> str:
        if self.router is not None:
            try:
                return await self.router.ask([asked], _ANSWER, dialogue.key)
            except LLMClientError:
                return ""
        talk = dialogue.aside([asked])
        return "" if talk.is_cut else final_answer((await talk.completion(_ANSWER)).content)
