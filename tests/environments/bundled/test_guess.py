from __future__ import annotations

import pytest

from strop.environments.bundled.guess import SIZES, Guess, parse
from strop.types import Message, Task
from tests.environments.playing import demonstrated, replied

TASK = Task((Message("user", "guess 11..18 in 4"),), "16", "guess", 2)


def test_higher_lower_and_right() -> None:
    answers = replied(Guess(2), TASK, ["<think>11..18</think>14", "17", "16"])
    assert [[m.content for m in answer.messages] for answer in answers] == [["higher"], ["lower"], []]
    assert [answer.done for answer in answers] == [False, False, True]
    assert [answer.reward for answer in answers] == [0.0, 0.0, 1.0]


def test_zeros_in_front_are_no_mistake() -> None:
    seven = Task((Message("user", "guess 1..8 in 4"),), "7", "guess", 2)
    assert [answer.reward for answer in replied(Guess(2), seven, ["05", "07"])] == [0.0, 1.0]
    assert Guess(2).check(seven, "007") == 1.0 and Guess(2).check(seven, "70") == 0.0


def test_turns_run_out() -> None:
    answers = replied(Guess(2), TASK, ["11", "12", "13", "14"])
    assert [answer.done for answer in answers] == [False, False, False, True]
    assert sum(answer.reward or 0 for answer in answers) == 0.0


@pytest.mark.parametrize("completion", ["", "what?", "<think>16", "9" * 5000, "-3", "16.0"])
def test_a_completion_that_is_no_number_costs_a_turn(completion: str) -> None:
    first, second = replied(Guess(2), TASK, [completion, "16"])
    assert first.messages[0].content == "say a number" and not first.done
    assert second.reward == 1.0


@pytest.mark.parametrize("level", SIZES)
def test_halving_always_succeeds_and_the_prompt_does_not_tell(level: int) -> None:
    prompt = Guess(level).task(0).messages[0].content
    low, high, turns = parse(prompt)
    assert high - low + 1 == SIZES[level] == 2 ** (turns - 1)
    lengths = set()
    for hidden in range(low, high + 1):
        _, paid = demonstrated(Guess(level), Task((Message("user", prompt),), str(hidden), "guess", level))
        assert sum(paid) == 1.0
        lengths.add(len(paid))
    assert max(lengths) == turns


def test_each_number_of_a_range_can_be_hidden_on_either_side_of_the_split() -> None:
    for heldout in (False, True):
        found: dict[str, set[int]] = {}
        for index in range(3000):
            task = Guess(1).task(index, heldout)
            low, _, _ = parse(task.messages[0].content)
            found.setdefault(task.messages[0].content, set()).add(int(task.answer) - low)
        assert all(places == {0, 1, 2, 3} for places in found.values())


def test_contradictory_guesses_never_widen_the_range() -> None:
    said, paid = demonstrated(Guess(2), TASK)
    assert sum(paid) == 1.0 and said[0].content == "<think>11..18</think>14"
    answers = replied(Guess(2), TASK, ["14", "3", "99", "16"])
    assert [m.content for answer in answers for m in answer.messages] == ["higher", "higher", "lower"]
    assert answers[-1].reward == 1.0
