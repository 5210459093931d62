"""The corpus: graded by its table, free of held-out tasks and compositions, and encoded as the tokenizer would."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.next_state import NextState
from strop.environments.data.heldout_split import is_heldout
from strop.environments.judging.verdict_questions import ASKED, BAD, GOOD
from strop.environments.tools.bundled_corpus import facts
from strop.pocket.completions import SINGLE_TURN, Completions
from strop.pocket.corpus import Author, Conversation
from strop.pocket.search_tasks import Searches
from strop.pocket.shards import Shards, encode, write_shard
from strop.pocket.target_accuracy import ACCURACY, VERDICTS, slip_number, slip_text, step_error
from strop.pocket.tokenizer import VOCABULARY, save_tokenizer
from strop.types import Message

COUNT = 4000


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    async def write() -> list[Conversation]:
        task_generator = Author(random.Random("test"))
        return [await task_generator.conversation() for _ in range(COUNT)]

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


def test_only_the_right_answer_of_a_retry_and_a_verdict_are_trained(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        asked = [m.content for m in conversation.messages]
        is_last = "wrong, try again" in asked or ASKED in asked
        assert conversation.trained_from == (len(conversation.messages) - 1 if is_last else 0)


def test_verdicts_are_right_as_often_as_meant() -> None:
    """Of sums, whose right answers are known here without the environment."""
    author, right, count = Author(random.Random("verdicts")), 0, 0
    for _ in range(1500):
        *_, asked, completion, wish, verdict = (message.content for message in author._verdict().messages)
        if (terms := asked.removesuffix("=?").split("+")) and all(term.isdigit() for term in terms):
            is_right = completion.rpartition("</think>")[2] == str(sum(map(int, terms)))
            right, count = right + (verdict == (GOOD if is_right else BAD)), count + 1
    assert wish == ASKED and count > 500 and abs(right / count - VERDICTS) < 4 * 0.5 / count**0.5


@pytest.mark.parametrize("level", [1, 3])
def test_what_comes_next_is_predicted_as_often_as_meant(level: int) -> None:
    completions, env = Completions(random.Random("next")), NextState(level)
    share = np.mean([env.check(task, completions.predicted(task)) for task in map(env.task, range(1500))])
    assert abs(share - ACCURACY["next_state"][level]) < 4 * 0.5 / 1500**0.5


def test_what_is_searched_for_is_found_and_names_are_new_each_time(conversations: list[Conversation]) -> None:
    found = [c.messages for c in conversations if any(m.content.startswith("<call>search ") for m in c.messages)]
    assert 0.015 * COUNT < len(found) < 0.045 * COUNT
    told = [m.content for messages in found for m in messages if m.role == "tool"]
    assert all(re.fullmatch(r"\w+ of \d{3} is \d{3}", text) for text in told) and len(set(told)) == len(told)
    known = sum(facts().get((text.split()[0], text.split()[2])) == text.split()[4] for text in told)
    assert known == 0, "nothing of the collection is taught"
    for messages in found:
        calls = [m.content for m in messages if m.content.startswith("<call>search ")]
        answers = [m.content for m in messages if m.role == "tool"]
        asked = [text.removeprefix("<call>search ").removesuffix("</call>") for text in calls]
        assert all(text.startswith(f"{query} is ") for query, text in zip(asked, answers, strict=True))


@pytest.mark.parametrize(("level", "searches"), [(1, 1), (2, 2)])
def test_searches_answer_as_often_as_meant(level: int, searches: int) -> None:
    task_generator, right = Searches(random.Random("search")), 0
    for _ in range(1500):
        messages = task_generator.messages(level)
        told = [message.content.split()[-1] for message in messages if message.role == "tool"]
        right += len(told) == searches and messages[-1].content == told[-1]
    assert abs(right / 1500 - ACCURACY["search"][level]) < 4 * 0.5 / 1500**0.5


@pytest.mark.parametrize(("env", "level"), [("arithmetic", 2), ("arithmetic", 4), ("arithmetic", 6), ("compose", 1)])
def test_rollouts_are_as_often_right_as_the_table_says(env: str, level: int) -> None:
    completions = Completions(random.Random("ability"))
    made = SINGLE_TURN[env](level)
    tasks = [made.task(index) for index in range(1500)]
    share = float(np.mean([made.check(task, completions.rollout(task)) for task in tasks]))
    # 4 standard errors
    assert abs(share - ACCURACY[env][level]) < 4 * 0.5 / 1500**0.5


def test_careful_quick_hint_and_wrong_do_what_they_say() -> None:
    completions, env = Completions(random.Random(0)), Arithmetic(5)
    tasks = [env.task(index) for index in range(600)]

    def share(write: object) -> float:
        assert callable(write)
        return float(np.mean([env.check(task, write(task)) for task in tasks]))

    usual = share(completions.rollout)
    assert share(lambda task: completions.rollout(task, 0.25)) > usual + 0.3
    assert share(completions.quick) < usual
    assert share(lambda task: completions.sum_up(task, right_steps=1)) > usual + 0.05
    assert share(lambda task: completions.sum_up(task, right_steps=3)) == 1.0
    assert share(completions.wrong) == 0.0
    assert not completions.quick(tasks[0]).startswith("<think>")


def test_a_search_ends_with_a_right_expression() -> None:
    completions, env = Completions(random.Random(0)), Countdown(3)
    tasks = [env.task(index) for index in range(200)]
    found = [completions.searched(task) for task in tasks]
    assert all(env.check(task, completion) == 1.0 for task, completion in zip(tasks, found, strict=True))
    assert 20 < sum(" no " in completion for completion in found) < 200


def test_step_errors_multiply_to_the_ability() -> None:
    assert (1 - step_error("arithmetic", 5, 3)) ** 3 == pytest.approx(ACCURACY["arithmetic"][5])


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
