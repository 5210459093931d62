"""Protocol of API dialects: parsing of requests, full and streamed responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from strop.generate.serve.ask_requests import Ask, ServedCompletion


class Events(Protocol):
    """Streaming events of a response: thinking and text deltas, then the final message."""

    def begin(self) -> Iterator[bytes]: ...
    def go_on(self, thought: str, text: str) -> Iterator[bytes]: ...  # what is new of each
    def end(self, completion: ServedCompletion) -> Iterator[bytes]: ...


class Dialect(Protocol):
    """API dialect."""

    def parse(self, body: dict[str, Any]) -> Ask: ...
    def answer(self, completion: ServedCompletion, ask: Ask) -> dict[str, Any]: ...
    def stream(self, ask: Ask, body: dict[str, Any], name: str) -> Events: ...
    def refuse(self, status: int, message: str) -> dict[str, Any]: ...


@dataclass
class Written:
    """Position of a stream within a completion."""

    thought: int = 0
    text: int = 0

    def news(self, thought: str, text: str) -> tuple[str, str]:
        """What is new of both."""
        new = thought[self.thought :], text[self.text :]
        self.thought, self.text = max(self.thought, len(thought)), max(self.text, len(text))
        return new
