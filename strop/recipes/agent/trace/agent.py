"""TRACE's router (2604.05336): who speaks in a rollout is chosen by descriptions, before its first word.

Reading: whoever answers with none of the names, or not at all, means the first weights; adapters are never mixed. One
that was not trained yet is the first weights too.
Papers: trace
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError, LLMClientError
from strop.generate.agents.support.episode_loop import acted, payments
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Episode, LLMClient
from strop.text.llm_prompt import question
from strop.types import Message, Origin, Sampling, Task

_ASKED = "Which of the requirements does the task ask for most? Write its name alone, or none."
_ANSWER = Sampling(temperature=0.0, max_tokens=64)


@dataclass(frozen=True)
class PicksPolicy(Agent):
    """The policy name that was chosen speaks with the environment, at most `max_turns` times."""

    policy_names: tuple[str, ...]
    described: str  # what each is good at, one `name: ...` per line
    router: LLMClient | None = None  # who chooses; None: the first weights
    max_turns: int = 8  # of one rollout

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        told = [line.partition(":")[0] for line in self.described.splitlines()]
        if not self.policy_names or told != list(self.policy_names) or self.max_turns < 1:
            raise ConfigurationError(
                f"PicksPolicy needs policy names, a line `name: ...` for each and max_turns >= 1, got "
                f"{list(self.policy_names)}, "
                f"lines for {told} and {self.max_turns}"
            )

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("PicksPolicy chooses at the beginning: use a strategy that begins there")
        await episode.reset(task)
        asked = Message("user", question(_ASKED, wanted="chosen", task=prompt_of(task), requirements=self.described))
        picked = (await self._answer(asked, dialogue)).strip()
        num_asides = len(dialogue.turns)
        dialogue.restart(task.messages, picked if picked in self.policy_names else "")
        return payments(await acted(dialogue, episode, self.max_turns), num_asides)

    async def _answer(self, asked: Message, dialogue: Dialogue) -> str:
        if self.router is not None:
            try:
                return await self.router.ask([asked], _ANSWER, dialogue.key)
            except LLMClientError:
                return ""
        talk = dialogue.aside([asked])
        return "" if talk.is_cut else final_answer((await talk.completion(_ANSWER)).content)
