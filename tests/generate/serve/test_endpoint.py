"""Who may ask, what is refused, and what happens to those who go away: nothing is lost, and nobody gets in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strop.generate.policy import Policy
from strop.generate.serve.public import Public
from strop.generate.serve.rollout_access import Rollouts
from strop.generate.serve.server import Door
from tests.generate.serve.serving import dialogue, pocket, task_of

openai = pytest.importorskip("openai")
ASK = {"model": "policy", "messages": [{"role": "user", "content": "3+4=?"}]}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return pocket(temperature=1.0)


async def sent(address: str, path: str, body: bytes, *headers: str, method: str = "POST") -> tuple[int, Any]:
    """A request in plain HTTP, as no client would send it."""
    host, port = address.removeprefix("http://").split(":")
    reader, task_generator = await asyncio.open_connection(host, int(port))
    lines = [
        f"{method} {path} HTTP/1.1",
        f"host: {host}",
        f"content-length: {len(body)}",
        "connection: close",
        *headers,
    ]
    task_generator.write("\r\n".join([*lines, "", ""]).encode() + body)
    answer = b""
    try:
        await task_generator.drain()
        answer = await reader.read()
    except ConnectionError:
        answer = await reader.read()
    task_generator.close()
    head, _, told = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), _json(told)


def _json(told: bytes) -> Any:
    begin = told.find(b"{")
    return json.loads(told[begin : told.rfind(b"}") + 1]) if begin >= 0 else None


def within(policy: Policy, work: Callable[[str, Rollouts, str, Any], Awaitable[None]]) -> Any:
    """A door with one rollout behind it."""

    async def play() -> Any:
        rollouts, talk = Rollouts(), dialogue(policy, task_of(0))
        door = Door(rollouts)
        address = await door.open()
        key, conversation = rollouts.admit(talk)
        try:
            await work(address, rollouts, key, conversation)
        finally:
            await door.close()
        return talk

    return asyncio.run(play())


def test_how_calls_are_written_is_found_once_for_all_rollouts(policy: Policy) -> None:
    rollouts = Rollouts()
    first, second = (rollouts.admit(dialogue(policy, task_of(number), number))[1] for number in range(2))
    assert first.format is not None and first.format is second.format is policy.calls
    assert Public(policy, "pocket", "token").visit("token").format is policy.calls


def test_keys_open_their_own_rollout_alone(policy: Policy) -> None:
    async def work(address: str, rollouts: Rollouts, key: str, conversation: Any) -> None:
        other, talk = rollouts.admit(dialogue(policy, task_of(1), 1))
        body = json.dumps(ASK).encode()
        for wrong in ("", "authorization: Bearer sk-strop-no", f"authorization: Basic {key}", "x-api-key: "):
            status, told = await sent(address, "/v1/chat/completions", body, *([wrong] if wrong else []))
            assert status == 401 and "key" in told["error"]["message"]
        status, told = await sent(address, "/v1/messages", body, f"x-api-key: {key}x")
        assert status == 401 and told["error"]["type"] == "authentication_error"
        status, _ = await sent(address, "/v1/chat/completions", body, f"x-api-key: {other}")
        assert status == 200 and talk.served.turns == 1 and conversation.served.turns == 0
        await rollouts.end(other)
        status, told = await sent(address, "/v1/chat/completions", body, f"authorization: Bearer {other}")
        assert status == 409 and "ended" in told["error"]["message"]
        status, _ = await sent(address, "/v1/models", b"", method="GET")
        assert status == 401

    within(policy, work)


BAD = {
    "no JSON": (b"{", "no JSON"),
    "no object": (b"[]", "JSON object"),
    "deep": (b"[" * 100_000, "no JSON"),
    "no messages": (b"{}", "last message"),
    "its own word last": (b'{"messages": [{"role": "assistant", "content": "a"}]}', "last message"),
    "unknown role": (b'{"messages": [{"role": "king", "content": "a"}]}', "king"),
    "an image": (b'{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "image_url"),
    "two answers": (b'{"n": 2, "messages": [{"role": "user", "content": "a"}]}', "one answer"),
    "half a character": (b'{"messages": [{"role": "user", "content": "\\uD800"}]}', "half a character"),
    "a number beyond all": (b'{"temperature": 1%s, "messages": []}' % (b"0" * 400), "last message"),
    "text for a number": (b'{"max_tokens": "a", "messages": []}', "max_tokens"),
    "fewer than no tokens": (b'{"max_tokens": -1, "messages": [{"role": "user", "content": "a"}]}', "max_tokens"),
    "a heat that is no number": (
        b'{"temperature": NaN, "messages": [{"role": "user", "content": "a"}]}',
        "temperature",
    ),
    "a nucleus of more than all": (b'{"top_p": 2, "messages": [{"role": "user", "content": "a"}]}', "top_p"),
    "an end that is no text": (b'{"stop": 3, "messages": [{"role": "user", "content": "a"}]}', "text"),
    "a tool without a schema": (
        b'{"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}], "messages": []}',
        "no JSON schema",
    ),
    "another tool": (b'{"tools": [{"type": "web"}], "messages": [{"role": "user", "content": "a"}]}', "function"),
    "a nameless tool": (b'{"tools": [{"type": "function"}], "messages": [{"role": "user", "content": "a"}]}', "name"),
    "logprobs": (b'{"logprobs": true, "messages": [{"role": "user", "content": "a"}]}', "logprobs are not served"),
    "JSON mode": (
        b'{"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "a"}]}',
        "'json_object' is not served",
    ),
    "too long for the context": (
        json.dumps({"messages": [{"role": "user", "content": "a" * 9000}]}).encode(),
        "used up",
    ),
}


STRANGERS = {
    "/v1/messages": b'{"messages": [{"role": "king", "content": "a"}]}',
    "/v1/responses": b'{"input": [{"role": "king", "content": "a"}]}',
}


def test_bad_requests_are_told_what_is_wrong(policy: Policy) -> None:
    async def work(address: str, rollouts: Rollouts, key: str, conversation: Any) -> None:
        for name, (body, wrong) in BAD.items():
            status, told = await sent(address, "/v1/chat/completions", body, f"authorization: Bearer {key}")
            assert status == 400 and wrong in told["error"]["message"], (name, status, told)
        for path, body in STRANGERS.items():
            status, told = await sent(address, path, body, f"x-api-key: {key}")
            assert status == 400 and "role" in told["error"]["message"], (path, told)
        acts = rollouts.let_act(conversation)
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/rollout/step", "/rollout/reward"):
            own = acts if path.startswith("/rollout") else key
            status, told = await sent(address, path, b" " * (10 << 20), f"x-api-key: {own}")
            assert status == 413, path
            status, told = await sent(address, path, b'{"half": ', f"x-api-key: {own}")
            assert status == 400 and "no JSON" in told["error"]["message"], path
        body = json.dumps({"input": "a", "previous_response_id": "resp_0123456789abn7"}).encode()
        status, told = await sent(address, "/v1/responses", body, f"authorization: Bearer {key}")
        assert status == 404 and "no answer" in told["error"]["message"]

    assert within(policy, work).turns == ()


def test_a_request_that_is_sent_again_is_answered_once(policy: Policy) -> None:
    async def work(address: str, rollouts: Rollouts, key: str, conversation: Any) -> None:
        body, who = json.dumps(ASK).encode(), f"authorization: Bearer {key}"
        again = [sent(address, "/v1/chat/completions", body, who, f"x-stainless-retry-count: {n}") for n in (0, 1, 2)]
        first = await sent(address, "/v1/chat/completions", body, who, "x-stainless-retry-count:  ")
        retried = await sent(address, "/v1/chat/completions", body, who, "x-stainless-retry-count: 1")
        assert first == retried and conversation.served.turns == 1 and conversation.served.retried == 1
        another = await again[0]
        assert another[1]["id"] != first[1]["id"] and conversation.served.turns == 2, "asked anew is sampled anew"
        for each in again[1:]:
            assert (await each)[1]["id"] == another[1]["id"]

    assert len(within(policy, work).turns) == 2


def test_whoever_hangs_up_leaves_a_whole_turn(policy: Policy) -> None:
    async def work(address: str, rollouts: Rollouts, key: str, conversation: Any) -> None:
        client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)
        stream = await client.chat.completions.create(**ASK, stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()
        await rollouts.end(key)

    (turn,) = within(policy, work).turns
    assert len(turn.tokens) == len(turn.logprobs) > 0


def test_an_emoji_in_two_halves_is_a_character(policy: Policy) -> None:
    async def work(address: str, rollouts: Rollouts, key: str, conversation: Any) -> None:
        body = b'{"messages": [{"role": "user", "content": "\\ud83d\\ude00 3+4=?"}]}'
        status, _ = await sent(address, "/v1/chat/completions", body, f"x-api-key: {key}")
        assert status == 200

    assert len(within(policy, work).turns) == 1


def test_the_key_that_asks_the_policy_does_not_act_in_the_episode(policy: Policy) -> None:
    async def work(address: str, rollouts: Rollouts, key: str, conversation: Any) -> None:
        conversation.hears_reward, acts = True, rollouts.let_act(conversation)
        for path, body in (("/rollout/step", b'{"content": "4"}'), ("/rollout/reward", b'{"reward": 1}')):
            status, told = await sent(address, path, body, f"x-api-key: {key}")
            assert status == 403 and "episode_key" in told["error"]["message"]
            status, _ = await sent(address, path, body, "x-api-key: env-strop-no")
            assert status == 401
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"):
            status, told = await sent(address, path, json.dumps(ASK).encode(), f"x-api-key: {acts}")
            assert status == 403 and "OPENAI_API_KEY" in told["error"]["message"]
        assert conversation.reward is None and conversation.served.turns == 0
        await rollouts.end(key)
        for each in (key, acts):
            status, told = await sent(address, "/rollout/reward", b'{"reward": 1}', f"x-api-key: {each}")
            assert status == 409 and "ended" in told["error"]["message"], "both keys end with the rollout"

    within(policy, work)


def test_a_reward_is_told_once(policy: Policy) -> None:
    async def work(address: str, rollouts: Rollouts, key: str, conversation: Any) -> None:
        who = f"authorization: Bearer {rollouts.let_act(conversation)}"
        status, told = await sent(address, "/rollout/reward", b'{"reward": 1}', who)
        assert status == 409 and conversation.reward is None, "nobody asked"
        conversation.hears_reward = True
        for wrong in (
            b'{"reward": "1"}',
            b'{"reward": true}',
            b'{"reward": 1e999}',
            b"{}",
            b'{"reward": 1e30}',
            b'{"reward": 1%s}' % (b"0" * 400),
        ):
            status, _ = await sent(address, "/rollout/reward", wrong, who)
            assert status == 400
        status, told = await sent(address, "/rollout/reward", b'{"reward": 0.5}', who)
        assert status == 200 and told["reward"] == conversation.reward == 0.5
        for more in (b'{"reward": 1}', b'{"reward": 0.5}'):
            status, told = await sent(address, "/rollout/reward", more, who)
            assert status == 409 and "final" in told["error"]["message"] and conversation.reward == 0.5
        assert conversation.served.refused == 3

    within(policy, work)


def test_a_public_model_draws_as_asked_and_counts_truly(policy: Policy) -> None:
    async def play() -> None:
        door = Door(Public(policy, "pocket", "secret"))
        address = await door.open()
        client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="secret", max_retries=0)
        try:
            told = [
                (await client.chat.completions.create(**ASK | {"model": "pocket"}, temperature=0)).choices[0].message
                for _ in range(3)
            ]
            assert len({each.content for each in told}) == 1
            few = await client.chat.completions.create(**ASK | {"model": "pocket"}, temperature=1, top_p=0)
            assert few.choices[0].message.content == told[0].content, "a nucleus of nothing is the likeliest token"
            sown = [
                (await client.chat.completions.create(**ASK | {"model": "pocket"}, temperature=1.5, seed=7)).choices[0]
                for _ in range(3)
            ]
            assert len({each.message.content for each in sown}) == 1
            assert [each.id for each in (await client.models.list()).data] == ["pocket"]
            status, told = await sent(
                address, "/v1/messages/count_tokens", json.dumps(ASK).encode(), "x-api-key: secret"
            )
            made = await client.chat.completions.create(**ASK, max_tokens=2)
            assert status == 200 and told["input_tokens"] == made.usage.prompt_tokens
            assert made.choices[0].finish_reason == "length" and made.usage.completion_tokens == 2
        finally:
            await door.close()

    asyncio.run(play())
