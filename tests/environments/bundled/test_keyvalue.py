from __future__ import annotations

import json
import time

import pytest

from strop.environments.bundled.keyvalue import KEYS, KeyValue, parse
from strop.types import Message, Task
from tests.environments.playing import demonstrated, replied


def task(prompt: str) -> Task:
    secret = {"store": {"red": 7, "blue": 5, "pink": 3}, "total": 12}
    return Task((Message("user", prompt),), json.dumps(secret), "keyvalue", 2)


READ, STORE = task("sum red blue"), task("sum red blue to gold")


def test_look_up_then_answer() -> None:
    said, paid = demonstrated(KeyValue(2), READ)
    assert [message.content for message in said] == [
        "<call>get red</call>",
        "7",
        "<call>get blue</call>",
        "5",
        "<think>7+5=12</think>12",
    ]
    assert [message.role for message in said] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert paid == [0.0, 0.0, 1.0]


def test_look_up_store_then_answer() -> None:
    said, paid = demonstrated(KeyValue(2), STORE)
    assert [m.content for m in said[4:]] == ["<think>7+5=12</think><call>set gold 12</call>", "ok", "12"]
    assert paid == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("completions", "paid"),
    [
        (["12"], 0.0),  # nothing stored
        (["<call>set gold 12</call>", "12"], 1.0),  # a lucky guess counts
        (["<call>set gold 12</call>", "11"], 0.0),
        (["<call>set gold 11</call>", "12"], 0.0),
        (["<call>set gold 11</call>", "<call>set gold 12</call>", "12"], 1.0),
        (["<call>set pink 12</call>", "12"], 0.0),
        (["<call>set gold 012</call>", "12"], 0.0),
    ],
)
def test_answer_and_stored_value_must_both_be_right(completions: list[str], paid: float) -> None:
    assert replied(KeyValue(2), STORE, completions)[-1].reward == paid


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("get red", "7"),
        ("get nothing", "error: no such key"),
        ("get", "error: get KEY or set KEY NUMBER"),
        ("drop all", "error: get KEY or set KEY NUMBER"),
        ("set gold twelve", "error: not a number"),
        ("set gold " + "9" * 5000, "error: not a number"),
        ("set gold 12", "ok"),
    ],
)
def test_the_tool_answers_every_call(text: str, answer: str) -> None:
    observation = replied(KeyValue(2), READ, [f"<call>{text}</call>"])[0]
    assert [m.content for m in observation.messages] == [answer] and not observation.done


def test_several_calls_in_one_completion_and_what_was_set_can_be_read() -> None:
    answers = replied(KeyValue(2), READ, ["<call>set red 9</call><call>get red</call>"])
    assert [m.content for m in answers[0].messages] == ["ok", "9"]


@pytest.mark.parametrize("text", ["<call>" * 16_000, "<call>get red</call" * 5_000, "</call>" * 14_000])
def test_hostile_text_costs_no_time(text: str) -> None:
    started = time.monotonic()
    assert replied(KeyValue(2), READ, [text])[0].done
    assert time.monotonic() - started < 0.5


def test_turns_run_out() -> None:
    answers = replied(KeyValue(2), READ, ["<call>get red</call>"] * 5)
    assert [answer.done for answer in answers] == [False] * 4 + [True]
    assert sum(answer.reward or 0 for answer in answers) == 0.0


def test_the_store_is_hidden_and_the_target_starts_empty() -> None:
    targets = 0
    for index in range(100):
        made = KeyValue(3).task(index)
        keys, target = parse(made.messages[0].content)
        secret = json.loads(made.answer)
        assert len(set(keys)) == 3 and set(keys) <= set(KEYS)
        assert secret["total"] == sum(secret["store"][key] for key in keys)
        assert target not in secret["store"] and not any(character.isdigit() for character in made.messages[0].content)
        targets += bool(target)
    assert 25 < targets < 75
