"""LLM clients without a model: canned answers, and rules of bundled environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from strop.errors import ConfigurationError, LLMClientError
from strop.roles import LLMClient
from strop.text.llm_prompt import signed
from strop.types import Message, Sampling

# Canned answers, for tests and for environments whose answers can be written down beforehand.


@dataclass(frozen=True)
class Canned(LLMClient):
    """Client that answers with the first entry whose key occurs in the last message."""

    answers: dict[str, str] = field(default_factory=dict)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        asked = messages[-1].content
        for words, answer in self.answers.items():
            if words in asked:
                return signed(asked, answer)
        raise LLMClientError(f"there is no answer to {asked[:80]!r} in the script")


# LLM client that is a rule of a bundled environment: a stand-in where there is no language model.

Rule: TypeAlias = Callable[[str], str]  # from the last message's text to an answer


@dataclass(frozen=True)
class Procedural(LLMClient):
    """Client that answers with `rule(text of the last message)`, where `rule` is a function of a module."""

    rule: Rule

    def __post_init__(self) -> None:
        if not self.rule.__qualname__.isidentifier():
            raise ConfigurationError(f"Procedural needs a function of a module, got {self.rule.__qualname__}")

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        text = messages[-1].content
        try:
            return signed(text, self.rule(text))
        except Exception as error:
            raise LLMClientError(f"rule {self.rule.__qualname__} failed: {type(error).__name__}: {error}") from error

    def __repr__(self) -> str:
        return f"Procedural({self.rule.__module__}.{self.rule.__qualname__})"
