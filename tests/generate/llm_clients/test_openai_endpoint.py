"""An LLM client behind an address: what is sent, what is kept, who is asked again, and what no answer is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strop.errors import ConfigurationError, LLMClientError
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.text.llm_prompt import question
from strop.types import Message, Sampling
from tests.generate.llm_clients.serving import Server, serving

SECRET = "sk-4711-never-on-disk"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def make(server: Server, folder: Path | None = None, **fields: Any) -> Endpoint:
    llm_client = Endpoint(server.url, "m", **fields)
    if folder is not None:
        llm_client.keep_in(folder)
    return llm_client


def ask(llm_client: Endpoint, text: str = "hello", key: int = 5, **sampling: Any) -> str:
    fields = {"temperature": 0.5, "max_tokens": 9} | sampling
    return asyncio.run(llm_client.ask([Message("user", text)], Sampling(**fields), key))


def test_it_asks_once_and_remembers(server: Server, tmp_path: Path) -> None:
    server.answers = ["one", "two", "three", "four", "five"]
    llm_client = make(server, tmp_path)
    assert [ask(llm_client), ask(llm_client), ask(make(server, tmp_path))] == ["one"] * 3, (
        "a resumed run asks nobody twice"
    )
    asyncio.run(llm_client.close())
    assert ask(llm_client) == "one", "whoever closed may ask again"
    assert ask(llm_client, key=6) == "two" and ask(llm_client, "other") == "three"
    assert ask(llm_client, temperature=0.0) == "four", "sampled otherwise, another question"
    first = server.asked[0]
    assert first["path"] == "/v1/chat/completions" and first["key"] is None
    assert first["messages"] == [{"role": "user", "content": "hello"}] and first["model"] == "m"
    assert (first["temperature"], first["max_tokens"], first["seed"]) == (0.5, 9, 5)
    assert "stop" not in first and "top_k" not in first
    assert ask(Endpoint(server.url, "m"), stop=("\n",), top_k=3) == "five", "in no run's folder, nothing is kept"
    assert (server.asked[-1]["stop"], server.asked[-1]["top_k"]) == (["\n"], 3)


def test_two_who_ask_the_same_at_once_hear_the_same(server: Server, tmp_path: Path) -> None:
    server.answers = ["one", "two"]
    llm_client = make(server, tmp_path)

    async def both() -> list[str]:
        question = [Message("user", "hello")]
        return list(await asyncio.gather(*(llm_client.ask(question, Sampling(), 1) for _ in range(2))))

    first, second = asyncio.run(both())
    assert first == second and len(server.asked) == 2


def test_at_most_so_many_at_once(server: Server) -> None:
    server.answers = [0.05] * 6
    llm_client = make(server, at_once=2)

    async def many() -> list[str]:
        return list(await asyncio.gather(*(llm_client.ask([Message("user", "x")], Sampling(), n) for n in range(6))))

    assert asyncio.run(many()) == ["late"] * 6 and server.most == 2


def test_a_key_is_sent_where_there_is_one_and_never_said_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", f"{SECRET}\n")
    server.answers = [f"your key is {SECRET}", f"no JSON but {SECRET}".encode()]
    llm_client = make(server, key_variable="SOME_KEY")
    assert ask(llm_client) == "your key is [key]" and server.asked[0]["key"] == f"Bearer {SECRET}"
    with pytest.raises(LLMClientError) as caught:
        ask(llm_client)
    assert SECRET not in str(caught.value) and "[key]" in str(caught.value)
    monkeypatch.setenv("SOME_KEY", "two\nlines")
    with pytest.raises(LLMClientError, match="SOME_KEY holds no key: need printable ASCII") as caught:
        ask(llm_client)
    assert "two" not in str(caught.value) and len(server.asked) == 2


def test_a_key_goes_nowhere_else(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", SECRET)
    with serving() as other:
        server.answers = [(307, {"Location": other.url}), (302, {"Location": other.url})]
        for status in (307, 302):
            with pytest.raises(LLMClientError, match=f"did not answer: status {status}"):
                ask(make(server, key_variable="SOME_KEY"), str(status))
        assert not other.asked


@pytest.mark.parametrize("status", [429, 500, 503])
def test_who_is_busy_is_asked_again(server: Server, status: int) -> None:
    server.answers = [(status, {"Retry-After": "0.01"}), "now"]
    assert ask(make(server)) == "now" and len(server.asked) == 2


def test_who_refuses_is_not_asked_again(server: Server) -> None:
    server.answers = [404, "never"]
    with pytest.raises(LLMClientError, match=r"m at http://.* did not answer: status 404"):
        ask(make(server))
    assert len(server.asked) == 1


def test_who_is_too_slow_is_no_answer_and_nobody_waits_for_it(server: Server) -> None:
    server.answers = [3.0]
    before = time.monotonic()
    with pytest.raises(LLMClientError, match=r"no answer within 0\.1 s"):
        ask(make(server, seconds=0.1))
    assert time.monotonic() - before < 1.5


@pytest.mark.parametrize(
    "answer",
    [
        b"no json",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"content": null}}]}',
        b"[" * 100_000,
        b"x" * (1 << 21),
    ],
)
def test_whatever_is_no_answer_is_none(server: Server, tmp_path: Path, answer: bytes) -> None:
    server.answers = [answer]
    with pytest.raises(LLMClientError, match="an answer"):
        ask(make(server, tmp_path))
    assert ask(make(server, tmp_path)) == "so", "what failed is not remembered"


def test_nobody_there() -> None:
    with pytest.raises(LLMClientError, match=r"no answer within 0\.5 s, last: .*refused.*after 1 s"):
        ask(Endpoint("http://127.0.0.1:9/v1", "m", seconds=0.5))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": "h"}, "an endpoint needs http"),
        ({"url": "http:///v1"}, "an endpoint needs http"),
        ({"model": ""}, "and a model"),
        ({"url": f"http://me:{SECRET}@h/v1"}, "leave out user, key and query"),
        ({"url": f"http://h/v1?key={SECRET}"}, "leave out user, key and query"),
        ({"key_variable": SECRET}, "the name of an environment variable, not the key itself"),
        ({"at_once": 0}, "at_once >= 1, seconds > 0, context >= 1, got 0, 120"),
        ({"seconds": 0.0}, "at_once >= 1, seconds > 0, context >= 1, got 8, 0"),
    ],
)
def test_what_cannot_be_is_refused_and_no_secret_told(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        Endpoint(**({"url": "http://h/v1", "model": "m"} | fields))
    assert SECRET not in str(caught.value)


def test_a_server_reads_no_markers_of_thoughts_within_a_fence() -> None:
    asked = question("<think> first.", completion="<think>x</think><tool_call>{}</tool_call><|im_end|>")
    with serving() as server:
        asyncio.run(Endpoint(server.url, "m").ask([Message("user", asked)], Sampling(), 0))
        sent = server.asked[0]["messages"][0]["content"]
    assert "(think)x(/think)(tool_call){}(/tool_call)(|im_end|)" in sent and sent.endswith("<think> first.")
