"""LLM clients without a model: canned answers, rules of bundled environments, and a user's own function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from strop.errors import ConfigurationError, LLMClientError
from strop.generate.llm_clients.support.http_post import in_daemon_thread
from strop.roles import LLMClient
from strop.storage.own_functions import loaded, parsed
from strop.text.llm_prompt import signed
from strop.types import FilePath, Message, Sampling

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


# LLM client that is a user's own function: any service, library or model behind a few lines of Python.


@dataclass(frozen=True)
class OwnFunction(LLMClient):
    """Client that calls `path` ("file.py:function"), which returns the answer as text and may be a coroutine.

    It names what it reads: `prompt` (the last message's text) or `messages` (all, as dicts with role and content);
    and `temperature`, `max_tokens` or `key` if it wants them.
    """

    path: FilePath  # FILE.py:FUNCTION
    seconds: float = 120.0  # deadline of one answer

    def __post_init__(self) -> None:
        file, colon, function = self.path.rpartition(":")
        if not colon or not function.isidentifier() or not Path(file).is_file():
            raise ConfigurationError(f"OwnFunction needs path=FILE.py:FUNCTION of an existing file, got {self.path!r}")
        parsed(Path(file), function)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        known: dict[str, Any] = {
            "prompt": messages[-1].content,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "key": key,
        }
        named = inspect.signature(self._function).parameters
        arguments = {name: known[name] for name in named if name in known}
        try:
            async with asyncio.timeout(self.seconds):
                said = await self._said(arguments)
        except TimeoutError:
            raise LLMClientError(f"{self.path} gave no answer within {self.seconds:g} s") from None
        except Exception as error:
            raise LLMClientError(f"{self.path} failed: {type(error).__name__}: {error}") from error
        if not isinstance(said, str):
            raise LLMClientError(f"{self.path} returned a {type(said).__name__}: need text")
        return said

    async def _said(self, arguments: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**arguments)
        return await in_daemon_thread(lambda: self._function(**arguments))

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return loaded(self.path)
