"""TRACE's router (2604.05336): who speaks in an attempt is chosen by descriptions, before its first word.

Reading: whoever answers with none of the names, or not at all, means the first weights; adapters are never mixed. One
that was not trained yet is the first weights too.
Papers: trace
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import AdviserError, ConfigurationError
from strop.generate.agents.support.episode_loop import acted, payments
from strop.generate.interfaces import Dialogue
from strop.roles import Adviser, Agent, Environment
from strop.text.llm_prompt import question
from strop.types import Message, Origin, Sampling, Task

_ASKED = "Which of the requirements does the task ask for most? Write its name alone, or none."
_ANSWER = Sampling(temperature=0.0, max_tokens=64)


@dataclass(frozen=True)
class PicksVoice(Agent):
    """The voice that was chosen speaks with the world, at most `max_turns` times."""

    voices: tuple[str, ...]
    described: str  # what each is good at, one `name: ...` per line
    router: Adviser | None = None  # who chooses; None: the first weights
    max_turns: int = 8  # of one attempt

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        told = [line.partition(":")[0] for line in self.described.splitlines()]
        if not self.voices or told != list(self.voices) or self.max_turns < 1:
            raise ConfigurationError(
                f"PicksVoice needs voices, a line `name: ...` for each and max_turns >= 1, got {list(self.voices)}, "
                f"lines for {told} and {self.max_turns}"
            )

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError("PicksVoice chooses at the beginning: use a strategy that begins there")
        await environment.reset(task)
        asked = Message("user", question(_ASKED, wanted="chosen", task=prompt_of(task), requirements=self.described))
        picked = (await self._answer(asked, dialogue)).strip()
        num_asides = len(dialogue.turns)
        dialogue.restart(task.messages, picked if picked in self.voices else "")
        return payments(await acted(dialogue, environment, self.max_turns), num_asides)

    async def _answer(self, asked: Message, dialogue: Dialogue) -> str:
        if self.router is not None:
            try:
                return await self.router.ask([asked], _ANSWER, dialogue.key)
            except AdviserError:
                return ""
        talk = dialogue.aside([asked])
        return "" if talk.is_cut else final_answer((await talk.reply(_ANSWER)).content)
