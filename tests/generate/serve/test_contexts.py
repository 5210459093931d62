"""Random histories: where a client sends back what it was given, however spelled, the sampled tokens are read again."""

from __future__ import annotations

import asyncio
import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from strop.backends import Completion, Stop
from strop.generate.policy import Policy
from strop.generate.serve.ask_requests import Said, ServedCompletion
from strop.generate.serve.dialects.chat_completions import ChatCompletions
from strop.generate.serve.dialects.messages import Messages
from strop.generate.serve.dialects.responses import Responses
from strop.generate.serve.serve_session import Visit
from strop.generate.serve.turn_tree import Histories, Place
from strop.generate.templates.tool_call_format import CallFormat
from strop.pocket.tokenizer import TOKEN_IDS
from strop.roles import Engine
from strop.types import IntArray, Message, Sampling, Start, Task, ToolCall
from tests.tiny_models import save_pocket_like

SESSIONS = int(os.environ.get("STROP_HISTORIES", "60"))
TASK = Task((Message("user", "sum"),), "", "test")
SCHEMA = {"type": "object", "properties": {"key": {}, "value": {}}}
COMPLETIONS = (
    "<call>set red 1</call>",
    "<think>so</think>well<call>set a b</call><call>set c d</call>",
    "done",
    "<call>bad",
)


@dataclass
class Talkative(Engine):
    """Says one of a few things; the version of a token is the number of the request."""

    stream: random.Random
    prompts: list[IntArray] = field(default_factory=list)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.prompts.append(prompt)
        text = self.stream.choice(COMPLETIONS)
        tokens = np.array([*_encoded(text), TOKEN_IDS["<|end|>"]])
        count, number = len(tokens), len(self.prompts)
        return Completion(tokens, np.zeros(count, np.float32), np.full(count, number), Stop.STOP)


def _encoded(text: str) -> list[int]:
    found, at = [], 0
    while at < len(text):
        tag = next(
            (each for each in ("<call>", "</call>", "<think>", "</think>") if text.startswith(each, at)), text[at]
        )
        found.append(TOKEN_IDS[tag])
        at += len(tag)
    return found


@dataclass
class Known:
    """A turn as the client keeps it: what it sent before, the answer, and the tokens up to its end."""

    history: list[Any]
    answer: dict[str, Any]
    tokens: list[int]


class ChatClient:
    dialect = ChatCompletions()

    def body(self, history: list[Any], is_other: bool) -> dict[str, Any]:
        tool = {
            "type": "function",
            "function": {"name": "set", "description": "other" if is_other else "", "parameters": SCHEMA},
        }
        return {"model": "m", "messages": history, "tools": [tool]}

    def user(self, text: str) -> list[Any]:
        return [{"role": "user", "content": text}]

    def back(self, answer: dict[str, Any], stream: random.Random, keeps_ids: bool, is_changed: bool) -> list[Any]:
        message = json.loads(json.dumps(answer["choices"][0]["message"]))
        message.pop("reasoning_content", None) if stream.random() < 0.5 else None
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = respelled(call["function"]["arguments"], stream)
            call["id"] = call["id"] if keeps_ids else "other"
        if is_changed:
            message["content"] = f"I said: {message.get('content')}"
        return [message]

    def results(self, answer: dict[str, Any], stream: random.Random) -> list[Any]:
        calls = answer["choices"][0]["message"].get("tool_calls", [])
        told = [{"role": "tool", "tool_call_id": call["id"], "content": str(stream.random())} for call in calls]
        return told or self.user(str(stream.random()))

    def has_ids(self, answer: dict[str, Any]) -> bool:
        return bool(answer["choices"][0]["message"].get("tool_calls"))


class MessagesClient:
    dialect = Messages()

    def body(self, history: list[Any], is_other: bool) -> dict[str, Any]:
        tool = {"name": "set", "description": "other" if is_other else "", "input_schema": SCHEMA}
        return {"model": "m", "max_tokens": 64, "messages": history, "tools": [tool]}

    def user(self, text: str) -> list[Any]:
        return [{"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}]

    def back(self, answer: dict[str, Any], stream: random.Random, keeps_ids: bool, is_changed: bool) -> list[Any]:
        blocks = json.loads(json.dumps(answer["content"]))
        for block in blocks:
            if block["type"] == "tool_use":
                block["id"] = block["id"] if keeps_ids else "other"
                block["input"] = dict(sorted(block["input"].items(), reverse=stream.random() < 0.5))
            if block["type"] == "thinking" and not keeps_ids:
                block["signature"] = ""
        if is_changed:
            blocks.append({"type": "text", "text": "I said"})
        return [{"role": "assistant", "content": blocks}]

    def results(self, answer: dict[str, Any], stream: random.Random) -> list[Any]:
        uses = [block for block in answer["content"] if block["type"] == "tool_use"]
        told = [{"type": "tool_result", "tool_use_id": each["id"], "content": str(stream.random())} for each in uses]
        return [{"role": "user", "content": told}] if told else self.user(str(stream.random()))

    def has_ids(self, answer: dict[str, Any]) -> bool:
        return any(block["type"] in ("tool_use", "thinking") for block in answer["content"])


class ResponsesClient:
    dialect = Responses()

    def body(self, history: list[Any], is_other: bool) -> dict[str, Any]:
        tool = {"type": "function", "name": "set", "description": "other" if is_other else "", "parameters": SCHEMA}
        return {"model": "m", "input": history, "tools": [tool]}

    def user(self, text: str) -> list[Any]:
        return [{"role": "user", "content": [{"type": "input_text", "text": text}]}]

    def back(self, answer: dict[str, Any], stream: random.Random, keeps_ids: bool, is_changed: bool) -> list[Any]:
        items = json.loads(json.dumps(answer["output"]))
        for item in items:
            if not keeps_ids:
                item.pop("id", None)
                item |= {"call_id": "other"} if item["type"] == "function_call" else {}
            if item["type"] == "function_call":
                item["arguments"] = respelled(item["arguments"], stream)
        if is_changed:
            items.append({"role": "assistant", "content": "I said"})
        return items

    def results(self, answer: dict[str, Any], stream: random.Random) -> list[Any]:
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        told = [
            {"type": "function_call_output", "call_id": each["call_id"], "output": str(stream.random())}
            for each in calls
        ]
        return told or self.user(str(stream.random()))

    def has_ids(self, answer: dict[str, Any]) -> bool:
        return True


def respelled(arguments: str, stream: random.Random) -> str:
    given = dict(sorted(json.loads(arguments).items(), reverse=stream.random() < 0.5))
    return json.dumps(given, indent=stream.choice([None, 2]), separators=stream.choice([None, (",", ":")]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pocket_like(tmp_path_factory.mktemp("model"))


def test_sampled_tokens_stand_in_the_context_or_a_new_one_is_opened(folder: Path) -> None:
    template = Policy.load(folder, Talkative(random.Random(0)), Sampling(), 512).template
    for seed in range(SESSIONS):
        stream = random.Random(seed)
        engine = Talkative(stream)
        policy = Policy(template, engine, Sampling(max_tokens=64), 4096)
        asyncio.run(
            _session(policy, engine, stream, stream.choice([ChatClient(), MessagesClient(), ResponsesClient()]))
        )


def test_what_differs_from_what_was_said_opens_a_context() -> None:
    """Nothing is guessed: another role, another message between two, or another argument is another conversation."""
    histories, talk = Histories(), cast(Any, object())
    heard = (Message("user", "a"), Message("user", "b"))
    call = ToolCall("set", '{"key": 1}')
    histories.add(Place(None, heard), (), talk, 0, ServedCompletion("xn1", "so", calls=(call,)))

    def found(*before: tuple[str, str], arguments: str = '{ "key": 1 }') -> bool:
        replied = Said(Message("assistant", "so", (ToolCall("set", arguments),)))
        said = [*(Said(Message(*each)) for each in before), replied, Said(Message("user", "c"))]
        place = histories.find(said, ())
        assert (place.unheard == (Message("user", "c"),)) is (place.node is not None)
        return place.node is not None

    assert found(("user", "a"), ("user", "b")) and found(("user", " a"), ("user", "b\n"))
    assert not found(("user", "a"), ("user", "x")) and not found(("user", "x"), ("user", "b"))
    assert not found(("system", "a"), ("user", "b")) and not found(("user", "a"), ("tool", "b"))
    assert not found(("user", "a"), ("user", "b"), arguments='{"key": 2}')


async def _session(policy: Policy, engine: Talkative, stream: random.Random, client: Any) -> None:
    talk = policy.dialogue(TASK, Start("a", 1))
    conversation = Visit(talk, CallFormat.of(policy.template))
    known: list[Known] = []
    for _ in range(stream.randint(2, 8)):
        before = stream.choice(known) if known and stream.random() < 0.3 else (known[-1] if known else None)
        keeps, changed, other = stream.random() < 0.7, stream.random() < 0.2, stream.random() < 0.1
        if before is None:
            history, is_spliced, other = client.user("sum"), False, False
        else:
            news = client.results(before.answer, stream)
            told = client.back(before.answer, stream, keeps, changed)
            history = [*before.history, *told, *news]
            is_spliced = not other and (not changed or (keeps and client.has_ids(before.answer)))
        body = client.body(history, other)
        ask = client.dialect.parse(body)
        completion = await conversation.answer(ask, conversation.another_name())
        expected = policy.template.opening([each.message for each in ask.said], ask.tools).tolist()
        if is_spliced and before is not None:
            fresh = [each.message for each in client.dialect.parse(client.body(news, other)).said]
            expected = [*before.tokens, *policy.template.between(before.tokens[-1], fresh).tolist()]
        assert engine.prompts[-1].tolist() == expected, (client, keeps, changed, other)
        if is_spliced or before is None or other or changed:
            known += _kept(client, completion, ask, history, expected, talk) if not other else []
    written = [int(version) for turn in talk.turns for version in np.unique(turn.versions)]
    assert sorted(written) == list(range(1, len(engine.prompts) + 1)), "every sampled token is in one turn"


def _kept(
    client: Any, completion: ServedCompletion, ask: Any, history: list[Any], read: list[int], talk: Any
) -> list[Known]:
    (turn,) = [each for each in talk.turns if len(each.versions) and _is(each, completion)]
    return [Known(history, client.dialect.answer(completion, ask), [*read, *turn.tokens.tolist()])]


def _is(turn: Any, completion: ServedCompletion) -> bool:
    return int(turn.versions[0]) == int(completion.name.rpartition("n")[2])
