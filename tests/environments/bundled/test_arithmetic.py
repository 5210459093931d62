from __future__ import annotations

import pytest

from strop.environments.bundled.arithmetic import SHAPES, Arithmetic, terms_of
from strop.environments.format.think_tags import final_answer, sum_steps, think
from strop.types import Message, Task

TASK = Task((Message("user", "47+12+30=?"),), "89", "arithmetic", 4)


def test_solution_shows_each_partial_sum() -> None:
    assert Arithmetic(4).solution(TASK) == "<think>47+12=59 59+30=89</think>89"
    assert Arithmetic(4).hint(TASK) == "47+12=59"
    assert Arithmetic(4).hint(TASK, 2) == "47+12=59 59+30=89"


@pytest.mark.parametrize(
    ("completion", "paid"),
    [
        ("89", 1.0),
        (" 89 ", 1.0),
        ("<think>nonsense</think>89", 1.0),
        ("<think>47+12=59</think>90</think>89", 1.0),
        ("<think>47+12=59 59+30=89</think>88", 0.0),
        ("<think>89", 0.0),
        ("089", 0.0),
        ("89 ok", 0.0),
    ],
)
def test_only_the_final_answer_counts(completion: str, paid: float) -> None:
    assert Arithmetic(4).check(TASK, completion) == paid


@pytest.mark.parametrize("level", SHAPES)
def test_level_sets_digits_and_terms(level: int) -> None:
    digits, count = SHAPES[level]
    for index in range(30):
        terms = terms_of(task := Arithmetic(level).task(index))
        assert len(terms) == count and {len(str(term)) for term in terms} == {digits}
        assert task.answer == str(sum(terms))


def test_the_sum_is_found_among_other_words() -> None:
    task = Task((Message("system", "1+1=?"), Message("user", "careful: 7+8=? hint: 7+8=15")), "15", "arithmetic", 1)
    assert terms_of(task) == [7, 8]


def test_a_slip_is_carried_on() -> None:
    assert sum_steps([5, 6, 7], lambda right: right + 1) == (["5+6=12", "12+7=20"], 20)
    assert sum_steps([5]) == ([], 5)
    assert think([], "5") == "5"


def test_working_that_never_ends_has_no_answer() -> None:
    assert final_answer("<think>1</think> 2\n") == "2"
    assert final_answer("2") == "2"
    assert final_answer("<think>2") == ""
