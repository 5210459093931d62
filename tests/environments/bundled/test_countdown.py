from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.environments.bundled.countdown import Countdown, Expression, random_expression
from strop.types import Message, Task

TASK = Task((Message("user", "make 23 from 2 3 7"),), "3*7+2", "countdown", 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("8-3-2", 3),
        ("8-(3-2)", 7),
        ("12/3/2", 2),
        ("12/(3/2)", 8),
        ("7/2", Fraction(7, 2)),
        (" 2 * ( 3 + 4 ) ", 14),
        ("((5))", 5),
    ],
)
def test_expressions_are_exact(text: str, value: int | Fraction) -> None:
    assert Expression(text).value == value


@pytest.mark.parametrize(
    "text",
    ["", "1+", "+1", "-1", "1 2", "(1", "1)", "()", "1**2", "1//2", "a", "1.5", "٣", "__import__('os')", "1=1"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Expression(text)


def test_deep_and_endless_expressions_are_refused_and_do_not_overflow() -> None:
    for text in ("(" * 100_000, "1+" * 100_000 + "1", "9" * 100_000, "(" * 100):
        with pytest.raises(ValueError):
            Expression(text)
        assert Countdown(3).check(TASK, text) == 0.0


@pytest.mark.parametrize(
    ("completion", "paid"),
    [
        ("3*7+2", 1.0),
        ("<think>3*7=21 21+2=23</think>2+7*3", 1.0),
        ("(7*3)+2", 1.0),
        ("3*7", 0.0),  # a number is left over
        ("2+3*7+2-2", 0.0),  # a number is used too often
        ("23", 0.0),
        ("3*7-2", 0.0),
        ("3*7/(2-2)", 0.0),
        ("7*2+3*3", 0.0),  # 23, but of other numbers
    ],
)
def test_each_number_exactly_once(completion: str, paid: float) -> None:
    assert Countdown(3).check(TASK, completion) == paid


def test_solution_shows_its_steps() -> None:
    assert Countdown(3).solution(TASK) == "<think>3*7=21 21+2=23</think>3*7+2"
    assert Countdown(3).hint(TASK) == "3*7=21"
    assert Expression("(8-2)/(1+2)").steps == ["8-2=6", "1+2=3", "6/3=2"]


def test_prompt_gives_the_numbers_sorted_and_the_target() -> None:
    for level in range(2, 6):
        for index in range(50):
            task = Countdown(level).task(index)
            _, target, _, *numbers = task.messages[0].content.split()
            known = Expression(task.answer)
            assert known.value == int(target) > 0
            assert sorted(known.numbers) == [int(number) for number in numbers]
            assert len(numbers) == level and numbers == sorted(numbers, key=int)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=2, max_size=5), st.integers(0, 2**32))
def test_random_expressions_use_each_number_once_and_stay_positive_integers(numbers: list[int], seed: int) -> None:
    made = Expression(random_expression(numbers, random.Random(seed)))
    assert sorted(made.numbers) == sorted(numbers)
    results = [step.partition("=")[2] for step in made.steps]
    assert all(result.isdigit() and int(result) > 0 for result in results)
