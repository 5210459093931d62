"""An address that answers as OpenAI's does, served here, with everything that can go wrong at one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """Answers with the next of `answers`: a text, a number as a status, (status, headers) or raw bytes; then `says`.

    A float is a pause before the answer.
    """

    daemon_threads = True
    answers: list[Any]
    asked: list[dict[str, Any]]
    says: Callable[[str], str]
    waiting: int
    most: int  # that waited at once

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked did not wait for the answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.waiting += 1
        server.most = max(server.most, server.waiting)
        server.asked.append(body | {"path": self.path, "key": self.headers.get("Authorization")})
        answer = server.answers.pop(0) if server.answers else server.says(body["messages"][-1]["content"])
        if isinstance(answer, float):
            time.sleep(answer)
            answer = "late"
        server.waiting -= 1
        self._answer(answer)

    def _answer(self, answer: Any) -> None:
        status, headers = answer if isinstance(answer, tuple) else (answer if isinstance(answer, int) else 200, {})
        said = (
            answer
            if isinstance(answer, bytes)
            else json.dumps({"choices": [{"message": {"content": answer}}]}).encode()
        )
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Handler)
    found.answers, found.asked, found.says, found.waiting, found.most = [], [], lambda text: "so", 0, 0
    with running(found):
        yield found


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    """A server that answers meanwhile."""
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
