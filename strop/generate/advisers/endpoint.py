"""Advice of a language model behind an OpenAI-compatible address: a server of one's own, or somebody else's."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from strop.errors import AdviserError, ConfigurationError
from strop.roles import Adviser
from strop.types import Message, Sampling

_LONGEST = 1 << 20  # bytes of an answer that are read
_BUSY = (408, 409, 425, 429, 500, 502, 503, 504)  # what may pass if one waits


@dataclass(frozen=True)
class Endpoint(Adviser):
    """POST url/chat/completions. What was answered is kept in a file: a resumed run asks nobody twice."""

    url: str  # up to /v1
    model: str
    cache: str = "advice.db"  # a SQLite file, made where the command runs
    key_variable: str = ""  # the environment variable that holds the key; none is sent where it is not set
    seconds: float = 60.0  # deadline of one answer
    tries: int = 3  # with 1, 2, 4, ... seconds between them

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")) or not self.model:
            raise ConfigurationError(f"an endpoint needs http(s)://... and a model, got {self.url!r}, {self.model!r}")
        if self.tries < 1 or self.seconds <= 0:
            raise ConfigurationError(f"an endpoint needs tries >= 1 and seconds > 0, got {self.tries}, {self.seconds}")

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        return await asyncio.to_thread(self._answer, _body(self.model, messages, sampling, key))

    def _answer(self, body: dict[str, Any]) -> str:
        name = hashlib.sha256(json.dumps([self.url, body]).encode()).hexdigest()
        with closing(sqlite3.connect(self.cache, timeout=self.seconds)) as book, book:
            book.execute("CREATE TABLE IF NOT EXISTS advice (question TEXT PRIMARY KEY, answer TEXT NOT NULL)")
            known = book.execute("SELECT answer FROM advice WHERE question=?", (name,)).fetchone()
            if known is None:
                known = (self._asked(body),)
                book.execute("INSERT OR REPLACE INTO advice VALUES (?, ?)", (name, known[0]))
        return str(known[0])

    def _asked(self, body: dict[str, Any]) -> str:
        problem = ""
        for number in range(self.tries):
            time.sleep(2 ** (number - 1) if number else 0)
            try:
                with urllib.request.urlopen(self._request(body), timeout=self.seconds) as answer:
                    return _content(answer.read(_LONGEST))
            except urllib.error.HTTPError as error:
                problem = f"status {error.code}"
                if error.code not in _BUSY:
                    break
            except OSError as error:  # nobody there, or no answer in time
                problem = str(error)
        raise AdviserError(f"{self.model} at {self.url} did not answer: {problem}")

    def _request(self, body: dict[str, Any]) -> urllib.request.Request:
        headers = {"Content-Type": "application/json"}
        if secret := os.environ.get(self.key_variable, ""):
            headers["Authorization"] = f"Bearer {secret}"
        return urllib.request.Request(f"{self.url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers)


def _body(model: str, messages: Sequence[Message], sampling: Sampling, key: int) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": key % 2**31,
    }


def _content(answer: bytes) -> str:
    """The first choice's text; whatever else an answer is, it is none."""
    try:
        content = json.loads(answer)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise AdviserError(f"an answer without choices[0].message.content: {answer[:80]!r}") from error
    if not isinstance(content, str):
        raise AdviserError(f"an answer whose content is no text: {str(content)[:80]!r}")
    return content
