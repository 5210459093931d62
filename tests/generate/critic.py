"""An LLM client that answers by what is wanted of it, and notes what it read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from strop.errors import LLMClientError
from strop.roles import LLMClient
from strop.text.llm_prompt import parts_of
from strop.types import Message, Sampling


@dataclass
class Critic(LLMClient):
    """Answers what is wanted, by text or by a function of what was read; what it has no answer to, it refuses."""

    answers: Mapping[str, str | Callable[[dict[str, str]], str]]
    asked: list[dict[str, str]] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self.asked.append(parts_of(messages[-1].content))
        if (wanted := self.asked[-1]["wanted"]) not in self.answers:
            raise LLMClientError(wanted)
        said = self.answers[wanted]
        return said if isinstance(said, str) else said(self.asked[-1])

    def read(self, wanted: str) -> list[dict[str, str]]:
        return [each for each in self.asked if each["wanted"] == wanted]
