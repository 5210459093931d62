"""Rules rewrite problems of the bundled environments, and the environments themselves say that the answers are
right.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.environments.bundled.countdown import Countdown, Expression
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.heldout_split import prompt_of
from strop.errors import LLMClientError
from strop.standins.rewrite.dispatch import Rewriting, rule_answer
from strop.stats.task_lineage import child
from strop.text.llm_prompt import question, told
from strop.types import Message, Sampling, Task


def rewrite(wanted: str, task: str, answer: str = "", key: int = 0, **parts: str) -> tuple[str, str]:
    said = told(rule_answer(question("please", wanted=wanted, task=task, answer=answer, **parts), key))
    return said.get("task", ""), said.get("answer", "")


@pytest.mark.parametrize(
    ("wanted", "task", "answer", "expected"),
    [
        ("simpler", "47+12+30=?", "89", ("59+30=?", "89")),
        ("reworded", "47+12+30=?", "89", ("12+30+47=?", "89")),
        ("easier", "47+12+30=?", "89", ("47+12=?", "59")),
        ("simpler", "rev(rot(abcd))=?", "adcb", ("rev(bcda)=?", "adcb")),
        ("easier", "rev(rot(abcd))=?", "adcb", ("rot(abcd)=?", "bcda")),
        ("simpler", "make 23 from 2 3 7", "3*7+2", ("make 23 from 2 3 7 hint: 3*7=21", "3*7+2")),
        ("reworded", "make 23 from 2 3 7", "3*7+2", ("make 23 from 7 3 2", "3*7+2")),
        ("easier", "make 23 from 2 3 7", "3*7+2", ("make 23 from 2 21", "21+2")),
        ("easier", "make 18 from 2 3 13", "(13-2*2)*2", ("make 18 from 2 4 13", "(13-4)*2")),
        ("easier", "make 35 from 3 4 5", "5*(3+4)", ("make 35 from 5 7", "5*7")),
    ],
)
def test_by_hand(wanted: str, task: str, answer: str, expected: tuple[str, str]) -> None:
    assert rewrite(wanted, task, answer) == expected


@pytest.mark.parametrize("wanted", ["simpler", "reworded", "similar", "easier", "harder"])
@pytest.mark.parametrize("env", [Arithmetic(4), Compose(2), Countdown(3)])
def test_the_env_finds_every_answer_right(env: Arithmetic | Compose | Countdown, wanted: str) -> None:
    for index in range(40):
        parent = env.task(index)
        text, answer = rewrite(wanted, prompt_of(parent), parent.answer, key=index)
        made = child(parent, text, answer)
        assert env.check(made, env.solution(made)) == 1.0, (prompt_of(parent), text, answer)
        assert text != prompt_of(parent) or wanted == "reworded"
        if wanted in ("simpler", "reworded"):
            assert answer == parent.answer
        if isinstance(env, Countdown):
            target, numbers = text.removeprefix("make ").partition(" hint")[0].split(" from ")
            read = Expression(answer)
            assert str(read.value) == target and sorted(read.numbers) == sorted(map(int, numbers.split()))


def test_steps_that_are_left() -> None:
    assert len(rewrite("harder", "47+12=?")[0].split("+")) == 3
    assert rewrite("harder", "rev(abcde)=?")[0].count("(") == 2
    assert len(rewrite("harder", "make 23 from 2 3 7", "3*7+2")[0].split()) == 7
    assert rewrite("similar", "47+12=?", key=1) != rewrite("similar", "47+12=?", key=2)
    assert rewrite("similar", "47+12=?", key=1) == rewrite("similar", "47+12=?", key=1)


@pytest.mark.parametrize(
    ("wanted", "task", "answer"),
    [
        ("simpler", "47+12=?", "59"),  # a step less is the answer
        ("easier", "47+12=?", "59"),
        ("simpler", "rev(abcde)=?", "edcba"),
        ("simpler", "make 21 from 3 7", "3*7"),
        ("harder", "make 15 from 1 2 3 4 5", "1+2+3+4+5"),
        ("nonsense", "47+12=?", "59"),
        ("simpler", "what is the capital of France?", "Paris"),
        ("solved", "sum red blue", ""),
        ("concepts", "sum red blue", ""),
        ("similar", "sum red blue", "no store"),
    ],
)
def test_what_no_rule_can_do_is_an_llm_client_that_fails(wanted: str, task: str, answer: str) -> None:
    asked = question("please", wanted=wanted, task=task, answer=answer)
    with pytest.raises(LLMClientError):
        asyncio.run(Rewriting().ask([Message("user", asked)], Sampling(), 0))


def test_stores_keep_their_secret_and_sum_other_keys() -> None:
    env = KeyValue(3)
    for index in range(20):
        parent = env.task(index)
        before = json.loads(parent.answer)
        for wanted, change in (("similar", 0), ("easier", -1), ("harder", 1), ("reworded", 0)):
            text, answer = rewrite(wanted, prompt_of(parent), parent.answer, key=index)
            after, keys = json.loads(answer), text.removeprefix("sum ").partition(" to ")[0].split()
            assert after["store"] == before["store"] and len(keys) == 3 + change == len(set(keys))
            assert after["total"] == sum(before["store"][key] for key in keys)


@pytest.mark.parametrize("env", [Arithmetic(4), Compose(3), Countdown(4)])
def test_problems_are_solved_without_their_answers(env: Arithmetic | Compose | Countdown) -> None:
    for index in range(3):
        task = env.task(index)
        assert env.check(task, rewrite("solved", prompt_of(task))[1]) == 1.0
    with pytest.raises(ValueError, match="nothing reaches it"):
        rewrite("solved", "make 97 from 1 1 1")


def test_what_a_completion_got_wrong_comes_first() -> None:
    text, answer = rewrite("mended", "47+12+30=?", "89", completion="<think>47+12=58 58+30=88</think>88")
    terms = [int(term) for term in text.removesuffix("=?").split("+")]
    assert terms[:2] == [47, 12] and terms[2] != 30 and answer == str(sum(terms))
    text, _ = rewrite("mended", "47+12+30=?", "89", completion="<think>47+12=59 59+30=88</think>88")
    assert text.startswith("59+30+"), "the second step is the one that went wrong"
    text, _ = rewrite("mended", "rev(rot(abcde))=?", "x", completion="<think>rot(abcde)=bcdea rev(bcdea)=aedcc</think>")
    assert text.startswith("rot(rev(") and "abcde" not in text
    text, _ = rewrite("mended", "47+12+30=?", "89", completion="no idea")
    assert [len(term) for term in text.removesuffix("=?").split("+")] == [2, 2, 2]


def test_concepts_and_problems_about_them() -> None:
    assert rule_answer(question("please", wanted="concepts", task="47+12+3=?"), 0).split("\n") == [
        "3 terms",
        "1 digits",
        "2 digits",
    ]
    assert rule_answer(question("please", wanted="concepts", task="rev(rot(rev(abcde)))=?"), 0).split("\n") == [
        "rev",
        "rot",
    ]
    text, answer = rewrite("about", "rev(rot(abcde))=?", "", ideas="inc\nswap\ndup")
    assert sorted(text.split("(")[:2]) == ["inc", "swap"]
    assert Compose(2).check(Task((Message("user", text),), answer, "compose", 2), answer) == 1.0
    text, answer = rewrite("about", "47+12=?", "", ideas="3 digits\n4 terms\n999999 digits")
    assert [len(term) for term in text.removesuffix("=?").split("+")] == [3] * 4
    text, answer = rewrite("about", "make 23 from 2 3 7", "3*7+2", ideas="/\n-")
    assert "/" in answer and "-" in answer and str(Expression(answer).value) == text.split()[1]
