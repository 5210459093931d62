"""A reward that bends with length and a price on repetition: the card's numbers, by hand, and by a second count."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.recipes.reward.demystifying_long_cot.recipe import RepetitionPaid, repeated_tokens
from strop.recipes.reward.demystifying_long_cot.reward import CosineLength
from strop.training.advantages.constant import Constant
from strop.types import Group, Outcome, Rollout
from tests.building import TASK, make_group, turn


def of(length: int, right: bool, **fields: float) -> float:
    group = make_group([0.0], lengths=[length], turn_rewards=[(float(right),)])
    return replace(CosineLength(Earned(), 1000), **fields)(group)[0]  # type: ignore[arg-type]


def test_the_numbers_of_the_card() -> None:
    assert [of(0, True), of(500, True)] == pytest.approx([2.0, 1.5])
    assert [of(0, False), of(500, False)] == pytest.approx([-10.0, -5.0])
    assert of(984, True) == of(984, False) == of(2000, True) == -10.0
    assert of(983, True) == pytest.approx(1 + (1 + math.cos(math.pi * 0.983)) / 2) and of(983, False) > -0.1
    assert of(984, True, exceed=-3.0) == -3.0 and of(990, True, margin=5) > 0


def test_shorter_is_better_where_right_and_longer_where_wrong() -> None:
    right, wrong = ([of(length, is_right) for length in range(0, 984, 7)] for is_right in (True, False))
    assert right == sorted(right, reverse=True) and wrong == sorted(wrong) and max(wrong) < 0 < min(right)


def test_what_is_nearly_right_is_wrong() -> None:
    group = make_group([0.0] * 3, lengths=[500] * 3, turn_rewards=[(0.5,), (0.3, 0.7), ()])
    assert CosineLength(Earned(), 1000)(group) == pytest.approx([-5.0, 1.5, -5.0])


def test_of_several_completions_the_longest_counts() -> None:
    """Three completions of 500, 400 and 300 tokens, of which each might have had 1000, came near no limit."""
    group = make_group([0.0, 0.0, 0.0], turn_rewards=[(0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 1.0)])
    for rollout, lengths in zip(group.rollouts, [(500, 400, 300), (300, 500, 400), (984, 2)], strict=True):
        rollout.turns = tuple(turn(length) for length in lengths)
    silent = replace(group.rollouts[1], turns=(), turn_rewards=())
    group.rollouts.append(silent)
    assert CosineLength(Earned(), 1000)(group) == pytest.approx([1.5, -5.0, -10.0, -10.0])


@pytest.mark.parametrize("fields", [{"limit": 16}, {"wrong": (-10.0, 0.5)}])
def test_values_that_cannot_be_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="above its margin and nothing above 0"):
        CosineLength(**{"judge": Earned(), "limit": 1000} | fields)  # type: ignore[arg-type]


def wrote(*turns: list[int]) -> Group:
    made = tuple(replace(turn(len(tokens)), tokens=np.array(tokens, dtype=np.int64)) for tokens in turns)
    return Group(0, TASK, [Rollout("a", TASK, made, Outcome.FINISHED)])


def scored(size: int, *turns: list[int]) -> list[int]:
    return repeated_tokens(wrote(*turns).rollouts[0], size).astype(int).tolist()


def test_tokens_that_were_said_before() -> None:
    assert scored(2, [1, 2, 3, 1, 2]) == [0, 0, 0, 1, 1]
    assert scored(2, [1, 1, 1]) == [0, 1, 1], "a run may lie over itself"
    assert scored(2, [1, 2], [1, 2]) == [0, 0, 1, 1], "also in a later turn"
    assert scored(2, [1, 2, 3], [4, 1], [2, 3]) == [0, 0, 0, 0, 0, 1, 1], "and never across turns"
    assert scored(3, [1, 2], []) == [0, 0] and scored(40, []) == []


def test_the_scores_by_a_second_count() -> None:
    """Token t is scored if some window of three that holds t equals one that begins earlier; all binary texts of 8."""
    for number in range(256):
        text = [number >> bit & 1 for bit in range(8)]
        windows = [text[start : start + 3] for start in range(6)]
        again = [start for start in range(6) if windows[start] in windows[:start]]
        assert scored(3, text) == [int(any(start <= t < start + 3 for start in again)) for t in range(8)]


def test_credit_by_hand() -> None:
    """Tokens 3 and 4 cost 1 each; discounted by a half: -1 - 1/2, then -3/4 and so on towards the beginning."""
    group = wrote([1, 2, 3, 1, 2])
    RepetitionPaid(Constant(2.0), 2, 1.0, 0.5)([group])
    found = group.rollouts[0].advantages
    assert found is not None
    assert found.tolist() == pytest.approx([2 - 0.1875, 2 - 0.375, 2 - 0.75, 2 - 1.5, 2 - 1])
    assert RepetitionPaid(Constant(), 2).learn([group]) == {"repeated_share": 0.4}
    assert RepetitionPaid(Constant(), 2).learn([]) == {}


def test_who_does_not_count_is_left_alone() -> None:
    group = wrote([1, 1, 1])
    group.rollouts[0].outcome = Outcome.FAILED
    RepetitionPaid(Constant(), 1)([group])
    assert group.rollouts[0].advantages is None and RepetitionPaid(Constant(), 1).learn([group]) == {}
    with pytest.raises(ConfigurationError, match=r"got 0 and 0\.99"):
        RepetitionPaid(Constant(), 0)
