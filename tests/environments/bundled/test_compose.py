from __future__ import annotations

import pytest

from strop.environments.bundled.compose import FUNCTIONS, Compose, parse, steps_of
from strop.types import Message, Task


@pytest.mark.parametrize(
    ("name", "result"),
    [("rev", "dzba"), ("rot", "bzda"), ("swap", "dbza"), ("dup", "aabzd"), ("drop", "bzd"), ("inc", "bcae")],
)
def test_functions(name: str, result: str) -> None:
    assert FUNCTIONS[name]("abzd") == result


def test_innermost_first() -> None:
    task = Task((Message("user", "rev(rot(abcd))=?"),), "adcb", "compose", 2)
    assert parse("rev(rot(abcd))=?") == (["rot", "rev"], "abcd")
    assert Compose(2).solution(task) == "<think>rot(abcd)=bcda rev(bcda)=adcb</think>adcb"
    assert Compose(2).hint(task) == "rot(abcd)=bcda"
    assert Compose(2).check(task, "adcb") == 1.0
    assert Compose(2).check(task, "<think>adcb</think>bcda") == 0.0


@pytest.mark.parametrize("level", range(1, 5))
def test_level_is_the_depth_and_no_answer_is_empty(level: int) -> None:
    for index in range(100):
        task = Compose(level).task(index)
        names, text = parse(task.messages[0].content)
        assert len(names) == level and task.answer
        assert steps_of(names, text)[1] == task.answer


def test_the_deepest_chain_of_drops_leaves_a_letter() -> None:
    assert steps_of(["drop"] * 4, "abcde")[1] == "e"
    assert steps_of(["swap"], "a")[1] == "a"
