"""The corpus: graded by its table, free of held-out tasks and compositions, and encoded as the tokenizer would."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from strop.environments.arithmetic import Arithmetic
from strop.environments.countdown import Countdown
from strop.environments.split import is_heldout
from strop.pocket.ability import ABILITY, slip_number, slip_text, step_error
from strop.pocket.corpus import Author, Conversation
from strop.pocket.replies import SINGLE_TURN, Replies
from strop.pocket.shards import Shards, encode, write_shard
from strop.pocket.tokenizer import VOCABULARY, save_tokenizer
from strop.types import Message

COUNT = 4000


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    async def write() -> list[Conversation]:
        writer = Author(random.Random("test"))
        return [await writer.conversation() for _ in range(COUNT)]

    return asyncio.run(write())


def of_user(conversations: list[Conversation]) -> list[str]:
    return [m.content for conversation in conversations for m in conversation.messages if m.role == "user"]


def test_no_composition_and_no_level_that_is_left_out(conversations: list[Conversation]) -> None:
    asked = of_user(conversations)
    assert any(re.search(r"\w+\(\w+\)=\?", text) for text in asked)
    assert not any(re.search(r"\w+\(\w+\(", m.content) for c in conversations for m in c.messages)
    assert not any(re.search(r"\d{4}", text.partition(" hint")[0]) for text in asked)
    assert not any(len(re.findall(r"\d{3}", text.partition(" hint")[0])) > 3 for text in asked)
    assert not any(re.search(r"from( \d+){5}", text) for text in asked)
    assert not any(re.search(r"sum( \w+){5}", text.partition(" to ")[0]) for text in asked)


def test_no_heldout_task(conversations: list[Conversation]) -> None:
    tasks = [re.sub(r"^\w+: | hint: .*$", "", text) for text in of_user(conversations)]
    tasks = [text for text in tasks if re.match(r"(\d+\+|make |guess |sum |\w+\(\w+\)=\?)", text)]
    assert len(tasks) > COUNT / 2 and not any(is_heldout(text) for text in tasks)


def test_everything_the_model_must_understand_is_there(conversations: list[Conversation]) -> None:
    asked = of_user(conversations)
    for word in ("quick: ", "careful: ", "search: ", "up: ", "half: "):
        assert sum(text.startswith(word) for text in asked) > 0.01 * COUNT
    assert sum(" hint: " in text for text in asked) > 0.05 * COUNT
    assert sum(text == "wrong, try again" for text in asked) > 0.05 * COUNT
    assert sum(c.messages[-1].role != "assistant" for c in conversations) == 0
    roles = {message.role for conversation in conversations for message in conversation.messages}
    assert roles == {"system", "user", "assistant", "tool"}


def test_only_the_right_answer_of_a_retry_is_trained(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        retried = [m.content for m in conversation.messages].count("wrong, try again")
        assert conversation.trained_from == (len(conversation.messages) - 1 if retried else 0)


@pytest.mark.parametrize(("world", "level"), [("arithmetic", 2), ("arithmetic", 4), ("arithmetic", 6), ("compose", 1)])
def test_attempts_are_as_often_right_as_the_table_says(world: str, level: int) -> None:
    replies = Replies(random.Random("ability"))
    made = SINGLE_TURN[world](level)
    tasks = [made.task(index) for index in range(1500)]
    share = float(np.mean([made.check(task, replies.attempt(task)) for task in tasks]))
    # 4 standard errors
    assert abs(share - ABILITY[world][level]) < 4 * 0.5 / 1500**0.5


def test_careful_quick_hint_and_wrong_do_what_they_say() -> None:
    replies, world = Replies(random.Random(0)), Arithmetic(5)
    tasks = [world.task(index) for index in range(600)]

    def share(write: object) -> float:
        assert callable(write)
        return float(np.mean([world.check(task, write(task)) for task in tasks]))

    usual = share(replies.attempt)
    assert share(lambda task: replies.attempt(task, 0.25)) > usual + 0.3
    assert share(replies.quick) < usual
    assert share(lambda task: replies.sum_up(task, right_steps=1)) > usual + 0.05
    assert share(lambda task: replies.sum_up(task, right_steps=3)) == 1.0
    assert share(replies.wrong) == 0.0
    assert not replies.quick(tasks[0]).startswith("<think>")


def test_a_search_ends_with_a_right_expression() -> None:
    replies, world = Replies(random.Random(0)), Countdown(3)
    tasks = [world.task(index) for index in range(200)]
    found = [replies.searched(task) for task in tasks]
    assert all(world.check(task, reply) == 1.0 for task, reply in zip(tasks, found, strict=True))
    assert 20 < sum(" no " in reply for reply in found) < 200


def test_step_errors_multiply_to_the_ability() -> None:
    assert (1 - step_error("arithmetic", 5, 3)) ** 3 == pytest.approx(ABILITY["arithmetic"][5])


def test_a_slip_is_always_a_change() -> None:
    number, text = slip_number(random.Random(0), 1.0), slip_text(random.Random(0), 1.0)
    assert all(number(right) > right for right in range(300))
    assert all(text(right) != right for right in ("abcd", "aaaa", "aab", "zz"))


def test_encoding_is_what_the_chat_template_gives(conversations: list[Conversation], tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    save_tokenizer(tmp_path, 512)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    shard = write_shard(seed=0, number=3, size=20_000)
    text = "".join(VOCABULARY[token] for token in shard.tokens)
    assert tokenizer.encode(text) == shard.tokens.tolist()

    async def first() -> Conversation:
        return await Author(random.Random("pocket/0/3")).conversation()

    messages = [{"role": m.role, "content": m.content} for m in asyncio.run(first()).messages]
    assert text[: len(tokenizer.apply_chat_template(messages, tokenize=False))] == tokenizer.apply_chat_template(
        messages, tokenize=False
    )


def test_trained_are_the_assistants_words_and_the_end_it_writes() -> None:
    messages = (Message("user", "ab"), Message("assistant", "<think>c</think>d"))
    tokens, trained = encode(Conversation(messages))
    assert len(tokens) == len(trained) == 1 + 2 + 1 + 1 + 4 + 1
    assert trained == b"\0\0\0\0" + b"\0" + b"\1\1\1\1" + b"\1"
    assert encode(Conversation(messages, trained_from=2))[1] == b"\0" * 10


def test_a_shard_holds_whole_conversations_within_the_context() -> None:
    shard = write_shard(seed=1, number=0, size=30_000)
    assert 29_000 < len(shard.tokens) == len(shard.trainable) == shard.lengths.sum() <= 30_000
    starts = np.cumsum(shard.lengths) - shard.lengths
    assert {VOCABULARY[token] for token in shard.tokens[starts]} == {"<|user|>", "<|system|>"}
    assert {VOCABULARY[token] for token in shard.tokens[starts + shard.lengths - 1]} == {"<|end|>"}
    assert not shard.trainable[starts].any() and shard.lengths.max() < 256


def test_shards_do_not_depend_on_who_writes_them() -> None:
    shards = Shards(seed=5, size=2000, workers=1)
    written = [shard for _, shard in zip(range(3), shards, strict=False)]
    for number, shard in enumerate(written):
        assert (shard.tokens == write_shard(5, number, 2000).tokens).all()
    assert shards.waited_seconds > 0
