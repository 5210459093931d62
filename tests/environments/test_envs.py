"""What every environment owes: stable tasks, disjoint sides, demonstrations that earn 1, refusal of a bad level."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from strop.capabilities import Demonstrates
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.guess import Guess
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.heldout_split import draw, is_heldout
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Message, Task
from tests.environments.playing import ENVS, LEVELS, demonstrated

NAMES = [f"{env.name}-{env.level}" for env in ENVS]


def prompts(env: Environment, heldout: bool, count: int) -> set[str]:
    return {env.task(index, heldout).messages[0].content for index in range(count)}


@pytest.mark.parametrize("env", ENVS, ids=NAMES)
def test_train_and_heldout_prompts_never_meet_whatever_the_seed(env: Environment) -> None:
    train = prompts(env, False, 300) | prompts(replace(env, seed=7), False, 300)
    heldout = prompts(env, True, 100) | prompts(replace(env, seed=7), True, 100)
    assert heldout and train and not train & heldout
    assert not any(is_heldout(prompt) for prompt in train) and all(is_heldout(prompt) for prompt in heldout)


@pytest.mark.parametrize("env", ENVS, ids=NAMES)
def test_the_same_index_is_the_same_task_and_others_differ(env: Environment) -> None:
    again = replace(env)
    assert [again.task(i) for i in range(20)] == [env.task(i) for i in range(20)]
    assert len({env.task(i).id for i in range(50)}) > 10
    assert [replace(env, seed=1).task(i) for i in range(20)] != [env.task(i) for i in range(20)]
    task = env.task(3)
    assert (task.source, task.level) == (env.name, env.level)


@pytest.mark.parametrize("env", ENVS, ids=NAMES)
@pytest.mark.parametrize("heldout", [False, True])
def test_demonstrations_are_paid_one_in_the_last_turn(env: Environment, heldout: bool) -> None:
    assert isinstance(env.episode(), Demonstrates)
    for index in range(25):
        said, paid = demonstrated(env, task := env.task(index, heldout))
        assert paid == [0.0] * (len(paid) - 1) + [1.0]
        assert env.check(task, said[-1].content) == 1.0


@pytest.mark.parametrize("env", ENVS, ids=NAMES)
def test_a_env_is_its_own_source_and_can_be_shipped(env: Environment) -> None:
    known = {kind.__name__: kind for kind in LEVELS}
    assert eval(repr(env), known) == env
    assert pickle.loads(pickle.dumps(env)).task(5) == env.task(5)
    pickle.dumps(env.episode())


@pytest.mark.parametrize("env", ENVS, ids=NAMES)
def test_unfinished_and_empty_completions_earn_nothing(env: Environment) -> None:
    task = env.task(0)
    for completion in ("", "<think>", f"<think>{task.answer}", "</think>", "<think>1</think>", "<|user|>", "x" * 1000):
        assert env.check(task, completion) == 0.0


@pytest.mark.parametrize("kind", LEVELS, ids=lambda kind: kind.__name__)
def test_a_level_out_of_range_is_refused_with_the_range(kind: type) -> None:
    lowest, highest = min(LEVELS[kind]), max(LEVELS[kind])
    for level in (lowest - 1, highest + 1):
        with pytest.raises(ConfigurationError, match=f"levels {lowest} to {highest}, got {level}"):
            kind(level)


def test_tasks_are_the_same_on_every_machine() -> None:
    """Frozen: a change here would move every recorded metric."""
    envs = (Arithmetic(4), Compose(2), Countdown(3), Guess(3), KeyValue(2))
    assert [env.task(0).messages[0].content for env in envs] == [
        "48+53+54=?",
        "drop(swap(ncthbg))=?",
        "make 99 from 3 3 11",
        "guess 75..90 in 5",
        "sum teal gold to navy",
    ]


def test_a_side_without_tasks_is_an_error_and_no_endless_loop() -> None:
    only = Task((Message("user", next(text for text in "abcdefghijklmnop" if not is_heldout(text))),), "", "x")
    assert draw("x", False, lambda stream: only) is only
    with pytest.raises(ConfigurationError, match="no held-out task among 20000"):
        draw("x", True, lambda stream: only)


def test_about_one_task_in_ten_is_held_out() -> None:
    assert 900 < sum(is_heldout(f"{number}+1=?") for number in range(10_000)) < 1100


@pytest.mark.parametrize("env", ENVS, ids=NAMES)
def test_an_answer_has_one_spelling_and_equal_answers_are_equally_right(env: Environment) -> None:
    task = env.task(0)
    right = demonstrated(env, task)[0][-1].content
    final = right.rpartition("</think>")[2]
    completions = [
        right,
        final,
        f" {final}\n",
        f"<think>so</think>{final}",
        "0",
        "00",
        "1+1",
        "abcd",
        "ABC",
        "",
        "?",
        "<think>",
    ]
    completions += [other for i in range(1, 20) for other in (demonstrated(env, env.task(i))[0][-1].content, str(i))]
    marks: dict[str, set[float]] = {}
    for completion in completions:
        marks.setdefault(env.answer(completion), set()).add(env.check(task, completion))
    assert all(len(found) == 1 for found in marks.values()), "equal answers are equally right"
    assert [answer for answer, found in marks.items() if found == {1.0}] == [env.answer(right)], "and only they are"
    assert all(
        env.answer(completion) == "" for completion in ("", "<think>", f"<think>{final}", "</think>", "?", "<|user|>")
    )
