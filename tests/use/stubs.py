"""Address that plays judge, teacher, task generator or simulator: it answers plausibly and records what it is asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.generate.llm_clients.serving import running


class Stub(ThreadingHTTPServer):
    """Server with its questions."""

    daemon_threads = True
    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked did not wait for the answer."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        stub = self.server
        assert isinstance(stub, Stub)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = "\n".join(str(message["content"]) for message in body["messages"])
        stub.asked.append(said)
        text = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer(said)}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def answer(asked: str) -> str:
    """What a model that keeps to the format might say; which of the choices, the question's hash says."""
    chosen = int(hashlib.sha256(asked.encode()).hexdigest(), 16)
    low = asked.lower()
    if re.search(r"\byes\b.{0,30}\bno\b|\bno\b.{0,30}\byes\b", low):
        return ("yes", "no")[chosen % 2]
    if re.search(r"\bA\b.{0,40}\bB\b", asked):
        return "AB"[chosen % 2]
    if found := re.search(r"\b([01])(?:\.0)? (?:to|and) (1|5|10|100)\b", low):
        low_end, high = int(found[1]), int(found[2])
        return str(low_end + chosen % (high - low_end + 1))
    return _task(asked) or f"Check the sum once more. Score: {chosen % 11}"


def _task(asked: str) -> str:
    """A new sum, for whoever asks for a task."""
    sums = re.findall(r"\d+(?:\+\d+)+(?==\?)", asked)
    return "+".join(str(int(term) + 1) for term in sums[-1].split("+")) + "=?" if sums else ""


@contextmanager
def stub() -> Iterator[Stub]:
    """A stub for as long as a run takes."""
    found = Stub(("127.0.0.1", 0), _Handler)
    found.asked = []
    with running(found):
        yield found
