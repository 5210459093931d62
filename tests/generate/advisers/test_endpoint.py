"""An address that answers as OpenAI's does, served here, with everything that can go wrong at one."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from strop.errors import AdviserError, ConfigurationError
from strop.generate.advisers.endpoint import Endpoint
from strop.generate.advisers.rewriting import Rewriting
from strop.recipes.advisers import KEY_VARIABLE, parse_adviser
from strop.types import Message, Sampling


class Server(HTTPServer):
    """Answers with the next of `answers`: a text, a number as a status, or raw bytes."""

    answers: list[Any]
    asked: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.asked.append(body | {"path": self.path, "key": self.headers.get("Authorization")})
        answer = server.answers.pop(0) if server.answers else "so"
        status = answer if isinstance(answer, int) else 200
        said = (
            answer
            if isinstance(answer, bytes)
            else json.dumps({"choices": [{"message": {"content": answer}}]}).encode()
        )
        self.send_response(status)
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Handler)
    found.answers, found.asked = [], []
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()


def make(server: Server, folder: Path, **fields: Any) -> Endpoint:
    return Endpoint(f"http://127.0.0.1:{server.server_port}/v1/", "m", str(folder / "advice.db"), **fields)


def ask(adviser: Endpoint, text: str = "hello", key: int = 5) -> str:
    return asyncio.run(adviser.ask([Message("user", text)], Sampling(temperature=0.5, max_tokens=9), key))


def test_it_asks_once_and_remembers(server: Server, tmp_path: Path) -> None:
    server.answers = ["one", "two", "three"]
    adviser = make(server, tmp_path)
    assert [ask(adviser), ask(adviser), ask(make(server, tmp_path))] == ["one"] * 3, "a resumed run asks nobody twice"
    assert ask(adviser, key=6) == "two" and ask(adviser, "other") == "three"
    first = server.asked[0]
    assert first["path"] == "/v1/chat/completions" and first["key"] is None
    assert first["messages"] == [{"role": "user", "content": "hello"}] and first["model"] == "m"
    assert (first["temperature"], first["max_tokens"], first["seed"]) == (0.5, 9, 5)


def test_a_key_is_sent_where_there_is_one(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "abc")
    ask(make(server, tmp_path, key_variable="SOME_KEY"))
    assert server.asked[0]["key"] == "Bearer abc"


def test_who_is_busy_is_asked_again_and_who_refuses_is_not(server: Server, tmp_path: Path) -> None:
    server.answers = [503, "late"]
    assert ask(make(server, tmp_path, tries=2)) == "late"
    server.answers = [404, "never"]
    with pytest.raises(AdviserError, match="did not answer: status 404"):
        ask(make(server, tmp_path, tries=2), "again")
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "answer", [b"no json", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": 7}}]}']
)
def test_whatever_is_no_answer_is_none(server: Server, tmp_path: Path, answer: bytes) -> None:
    server.answers = [answer]
    with pytest.raises(AdviserError, match="an answer"):
        ask(make(server, tmp_path))
    assert ask(make(server, tmp_path)) == "so", "what failed is not remembered"


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(AdviserError, match="did not answer"):
        ask(Endpoint("http://127.0.0.1:9/v1", "m", str(tmp_path / "advice.db"), tries=1))


def test_advisers_by_name() -> None:
    assert parse_adviser("rules") == Rewriting() and parse_adviser("itself") is None
    assert parse_adviser("http://h:1/v1#m") == Endpoint("http://h:1/v1", "m", key_variable=KEY_VARIABLE)
    for wrong in ("rule", "http://h:1/v1", "ftp://h#m"):
        with pytest.raises(ConfigurationError, match="rules, itself or http"):
            parse_adviser(wrong)
    for fields in ({"url": "h", "model": "m"}, {"url": "http://h", "model": ""}):
        with pytest.raises(ConfigurationError, match="an endpoint needs"):
            Endpoint(**fields)
    with pytest.raises(ConfigurationError, match="tries >= 1"):
        Endpoint("http://h", "m", tries=0)
