"""Advice that a program can give: a rule of an environment in place of a larger model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from strop.errors import ConfigurationError, LLMClientError
from strop.roles import LLMClient
from strop.text.llm_prompt import signed
from strop.types import Message, Sampling


@dataclass(frozen=True)
class Procedural(LLMClient):
    """Asks `rule`, a function from the last message's text to an answer, named as `module:function`."""

    rule: str

    def __post_init__(self) -> None:
        if ":" not in self.rule:
            raise ConfigurationError(f"Procedural needs a rule named as module:function, got {self.rule!r}")

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        try:
            return signed(messages[-1].content, self._function(messages[-1].content))
        except Exception as error:
            raise LLMClientError(f"{self.rule} failed: {type(error).__name__}: {error}") from error

    @cached_property
    def _function(self) -> Callable[[str], str]:
        module, _, name = self.rule.partition(":")
        try:
            found: Callable[[str], str] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(f"there is no {self.rule}: {error}") from error
        return found
