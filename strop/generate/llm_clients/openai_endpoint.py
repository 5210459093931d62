"""LLM client for an OpenAI-compatible endpoint, local or remote."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from strop.errors import ConfigurationError, LLMClientError
from strop.generate.llm_clients.support.http_post import posted
from strop.generate.llm_clients.support.retry import patiently
from strop.roles import LLMClient
from strop.storage.llm_answers import AnswerCache
from strop.text.llm_prompt import cut_to, within_fences
from strop.text.sanitize import without_markers
from strop.types import Message, Sampling

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass
class Endpoint(LLMClient):
    """Client of `POST url/chat/completions`; busy (429, 5xx) or unreachable servers are retried until the deadline.

    Answers are cached in the run's folder, so that a resumed run asks nothing twice. The API key comes from the
    environment variables, is sent to this address only, and is never written to disk.
    """

    url: str  # up to /v1
    model: str
    key_variable: str = ""  # the environment variable that holds the key; none is sent where it is not set
    seconds: float = 120.0  # deadline of one answer, all tries together
    at_once: int = 8  # questions that wait for an answer together
    context: int = 32768  # tokens of a question and its answer, estimated; longer texts in it lose their middle
    _book: AnswerCache | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = urlsplit(self.url)
        if found.scheme not in ("http", "https") or not found.hostname or not self.model:
            raise ConfigurationError(f"an endpoint needs http(s)://... and a model, got {self.url!r}, {self.model!r}")
        if found.username is not None or found.query:
            raise ConfigurationError(
                "an endpoint's url is written into the run's folder: leave out user, key and query"
            )
        if self.key_variable and not _NAME.fullmatch(self.key_variable):
            raise ConfigurationError("key_variable is the name of an environment variable, not the key itself")
        if self.at_once < 1 or self.seconds <= 0 or self.context < 1:
            got = f"got {self.at_once}, {self.seconds:g} and context {self.context}"
            raise ConfigurationError(f"an endpoint needs at_once >= 1, seconds > 0, context >= 1, {got}")

    def unreachable(self, seconds: float = 5.0) -> str:
        """Why nothing listens at the address; empty: something does."""
        found = urlsplit(self.url)
        port = found.port or (443 if found.scheme == "https" else 80)
        try:
            socket.create_connection((found.hostname, port), seconds).close()
        except OSError as error:
            return f"nothing answers at {self.url}: {error}"
        return ""

    def keep_in(self, folder: Path) -> None:
        self._book = AnswerCache(folder / "llm_answers.db")

    async def close(self) -> None:
        if self._book is not None:
            self._book.close()

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        asked = [self.url, self.model, [[m.role, m.content] for m in messages], asdict(sampling), key]
        question = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        if self._book is not None and (known := self._book.known(question)) is not None:
            return known
        answer = await self._answer(_body(self.model, self._fitting(messages, sampling), sampling, key))
        return answer if self._book is None else self._book.keep(question, answer)

    def _fitting(self, messages: Sequence[Message], sampling: Sampling) -> list[Message]:
        """The messages, the last of them cut where it leaves no room for the answer."""
        *before, last = messages
        room = self.context - sampling.max_tokens - sum(_tokens(message.content) for message in before)
        return [*before, replace(last, content=cut_to(last.content, room, _tokens))]

    async def _answer(self, body: bytes) -> str:
        secret = os.environ.get(self.key_variable, "").strip()
        if not secret.isascii() or not secret.isprintable():
            raise LLMClientError(f"{self.key_variable} holds no key: need printable ASCII")
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
        address = f"{self.url.rstrip('/')}/chat/completions"
        try:
            async with self._seats:
                answer = await patiently(lambda left: posted(address, body, headers, left), self.seconds)
            return _without(secret, _content(answer))
        except LLMClientError as error:
            raise LLMClientError(_without(secret, f"{self.model} at {self.url} did not answer: {error}")) from None

    @cached_property
    def _seats(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.at_once)


def _tokens(text: str) -> int:
    """An estimate from above, as the tokenizer is not known."""
    return len(text) // 3 + 1


def _body(model: str, messages: Sequence[Message], sampling: Sampling, key: int) -> bytes:
    asked: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": _as_text(message.content)} for message in messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": key % 2**31,
    }
    asked |= {"stop": list(sampling.stop)} if sampling.stop else {}
    asked |= {"top_k": sampling.top_k} if sampling.top_k else {}  # which not every server knows
    return json.dumps(asked).encode()


def _as_text(content: str) -> str:
    """What is fenced as data without the markers of thoughts and tools, which a server's template may know."""
    return within_fences(content, without_markers)


def _without(secret: str, text: str) -> str:
    """A server may say back what it was sent."""
    return text.replace(secret, "[key]") if secret else text


def _content(answer: bytes) -> str:
    """The first choice's text; whatever else an answer is, it is none."""
    try:
        content = json.loads(answer)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise LLMClientError(f"an answer without choices[0].message.content: {answer[:80]!r}") from error
    if not isinstance(content, str):
        raise LLMClientError(f"an answer whose content is no text: {str(content)[:80]!r}")
    return content
