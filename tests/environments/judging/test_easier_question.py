"""An environment as yes or no, and as a choice: what is asked, what is right, and what guessing earns."""

from __future__ import annotations

import pickle
from itertools import combinations
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.table import Table
from strop.environments.judging.easier_question import behind, key_of
from strop.environments.judging.multiple_choice import Choice
from strop.environments.judging.verdict_questions import Judged
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Task
from tests.environments.playing import demonstrated

INNER = (Arithmetic(4), Countdown(3))


def question(task: Task, inner: Task) -> str:
    return task.messages[-1].content.removeprefix(f"{inner.messages[-1].content} ")


@pytest.mark.parametrize("inner", INNER, ids=lambda env: env.name)
def test_half_of_the_shown_answers_are_right(inner: Arithmetic | Countdown) -> None:
    env, keys = Judged(inner), []
    for index in range(300):
        task, plain = env.task(index), inner.task(index)
        shown = question(task, plain).removeprefix("is it ").removesuffix("?")
        keys.append(key_of(task))
        assert inner.check(plain, shown) == (keys[-1] == "yes"), "right ones are, wrong ones are not"
    assert abs(keys.count("yes") - 150) < 4 * 300**0.5 / 2 and set(keys) == {"yes", "no"}
    assert sum(env.check(env.task(index), "yes") for index in range(300)) == keys.count("yes")


@pytest.mark.parametrize("inner", INNER, ids=lambda env: env.name)
def test_one_of_the_options_is_right_and_it_may_be_any(inner: Arithmetic | Countdown) -> None:
    env, keys = Choice(inner, 4), []
    for index in range(200):
        task, plain = env.task(index), inner.task(index)
        words = question(task, plain).split(" ")
        assert words[::2] == ["a", "b", "c", "d"] and len(set(words[1::2])) == 4
        right = [letter for letter, shown in zip(words[::2], words[1::2], strict=True) if inner.check(plain, shown)]
        assert right == [key_of(task)]
        keys += right
    assert all(abs(keys.count(letter) - 50) < 4 * (200 * 3 / 16) ** 0.5 for letter in "abcd")


def test_guessing_any_set_of_options_earns_one_in_all_sets() -> None:
    env = Choice(Arithmetic(2), 3)
    sets = [" ".join(each) for size in (1, 2, 3) for each in combinations("abc", size)]
    for index in range(20):
        assert sum(env.check(env.task(index), guess) for guess in sets) == 1
    assert len(sets) == 2**3 - 1


def test_letters_are_a_set_and_nothing_else_counts() -> None:
    env = Choice(Arithmetic(2), 3)
    assert env.answer("<think>x</think> c, a c") == "ac" == env.answer("a c")
    assert [env.answer(completion) for completion in ("", "d", "a 7", "ab", "<think>a")] == [""] * 5
    assert [Judged(Arithmetic(2)).answer(completion) for completion in ("yes", " no ", "Yes", "yes no", "")] == [
        "yes", "no", "", "", "",
    ]  # fmt: skip
    assert all(env.check(env.task(index), "") == 0.0 for index in range(20))


@pytest.mark.parametrize("kind", [Judged, Choice])
@pytest.mark.parametrize("heldout", [False, True])
def test_it_is_a_env_like_any_other(kind: type[Judged] | type[Choice], heldout: bool) -> None:
    for inner in INNER:
        env: Environment = kind(inner)
        assert env.name.endswith(f"-{inner.name}") and env.level == inner.level and env.pays and env.is_inline
        for index in range(10):
            task = env.task(index, heldout)
            assert behind(task, inner.name) == inner.task(index, heldout), "on the side of the task behind"
            said, paid = demonstrated(env, task)
            assert paid == [1.0] and said[0].content.startswith("<think>")
            assert (task.source, task.level) == (env.name, env.level) and task == env.task(index, heldout)
        assert pickle.loads(pickle.dumps(env)) == env


def test_a_table_serves_and_says_how_many(tmp_path: Path) -> None:
    path = tmp_path / "capitals.jsonl"
    path.write_text("".join(f'{{"prompt": "what is {n} twice?", "answer": "{2 * n}"}}\n' for n in range(20)))
    env = Judged(Table(str(path)))
    assert env.num_tasks() == Table(str(path)).num_tasks() and env.name == "judged-capitals"
    said, paid = demonstrated(env, env.task(0))
    assert paid == [1.0] and said[0].content in ("yes", "no")
    path.write_text('{"prompt": "1", "answer": "2"}\n{"prompt": "3", "answer": "2"}\n{"prompt": "4", "answer": "2"}\n')
    with pytest.raises(ConfigurationError, match="has only 1 different answers"):
        Choice(Table(str(path))).task(0)


def test_refuses_envs_of_several_turns_and_single_options() -> None:
    for kind in (Judged, Choice):
        with pytest.raises(ConfigurationError, match="keyvalue is no environment of one completion"):
            kind(KeyValue(2))
    for options in (1, 9):
        with pytest.raises(ConfigurationError, match=f"2 to 8 options, got {options}"):
            Choice(Arithmetic(2), options)
