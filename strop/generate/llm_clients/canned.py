"""Canned advice, for tests and for environments whose advice can be written down beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.errors import LLMClientError
from strop.roles import LLMClient
from strop.text.llm_prompt import signed
from strop.types import Message, Sampling


@dataclass(frozen=True)
class Canned(LLMClient):
    """Answers with the text of the first entry whose key stands in the last message."""

    answers: dict[str, str] = field(default_factory=dict)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        asked = messages[-1].content
        for words, answer in self.answers.items():
            if words in asked:
                return signed(asked, answer)
        raise LLMClientError(f"there is no answer to {asked[:80]!r} in the script")
