"""Which two attempts become a pair: DivPO's and iterative DPO's rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.gates.best_and_worst import BestAndWorst
from strop.filter.gates.diverse_pair import DiversePair, unusual
from strop.filter.gates.longest_right import LongestRight
from strop.types import Group, Outcome
from tests.building import make_group, turn


def kept(group: Group | None) -> list[str]:
    assert group is not None
    return [attempt.id for attempt in group.trajectories]


def with_diversity(rewards: list[float], diversity: list[float]) -> Group:
    """Attempts of two tokens whose mean log-probability is minus the diversity."""
    group = make_group(rewards)
    for attempt, each in zip(group.trajectories, diversity, strict=True):
        attempt.turns = (replace(turn(2), logprobs=np.array([-each - 0.5, -each + 0.5], dtype=np.float32)),)
    return group


def test_the_rarest_good_against_the_commonest_bad() -> None:
    group = with_diversity([1.0, 0.95, 0.2, 0.0], [1.0, 3.0, 5.0, 2.0])
    assert [unusual(attempt) for attempt in group.trajectories] == pytest.approx([1.0, 3.0, 5.0, 2.0])
    assert kept(DiversePair(0.1)(group).group) == ["0-1", "0-3"]
    assert kept(DiversePair(0.3)(group).group) == ["0-1", "0-3"]  # 0.2 counts as bad, too, and is rarer
    assert kept(DiversePair(0.0)(group).group) == kept(BestAndWorst()(group).group) == ["0-0", "0-3"]


def test_binary_rewards_split_by_correctness_and_equals_make_no_pair() -> None:
    group = with_diversity([1.0, 0.0, 1.0, 0.0], [1.0, 9.0, 2.0, 0.5])
    assert kept(DiversePair()(group).group) == ["0-2", "0-3"]
    assert DiversePair()(make_group([1.0, 1.0])).reason == "all rewards are 1"
    assert DiversePair()(make_group([1.0, 0.0], failed=[0, 1])).group is None
    with pytest.raises(ConfigurationError, match=r"share < 0.5, or good meets bad; got 0.5"):
        DiversePair(0.5)


def answered(scores: list[int], lengths: list[int]) -> Group:
    """1 right, 0 wrong, -1 cut off before an answer."""
    group = make_group([float(max(score, 0)) for score in scores], lengths)
    for attempt, score in zip(group.trajectories, scores, strict=True):
        attempt.outcome = Outcome.TRUNCATED if score < 0 else Outcome.FINISHED
    return group


def test_the_longest_right_against_one_without_an_answer() -> None:
    assert kept(LongestRight()(answered([1, 1, 0, -1], [5, 9, 7, 3])).group) == ["0-1", "0-3"]
    assert kept(LongestRight()(answered([1, 0], [5, 9])).group) == ["0-0", "0-1"]


def test_two_wrong_ones_are_no_pair_unless_wanted() -> None:
    group = answered([0, 0], [3, 5])
    assert LongestRight()(group).group is None
    pair = LongestRight(may_pair_wrong=True)(group).group
    assert kept(pair) == ["0-1", "0-0"] and pair is not None
    assert [attempt.reward for attempt in pair.trajectories] == [0.0, -1.0]  # a loss sees who is preferred
    assert [attempt.reward for attempt in group.trajectories] == [0.0, 0.0]
    assert kept(LongestRight()(answered([0, -1, 0], [3, 9, 5])).group) == ["0-2", "0-1"]


def test_nothing_to_prefer_is_dropped_with_its_counts() -> None:
    assert LongestRight()(answered([1, 1], [1, 2])).reason == "no pair in 2 right, 0 wrong, 0 without answer"
    assert LongestRight()(answered([-1, -1], [1, 2])).group is None


def test_the_rejected_one_is_taken_by_a_chance_that_repeats() -> None:
    groups = [replace(answered([1, 0, 0, 0], [9, 1, 1, 1]), number=number) for number in range(30)]
    taken = [kept(LongestRight()(group).group)[1] for group in groups]
    assert set(taken) == {"0-1", "0-2", "0-3"}
    assert taken == [kept(LongestRight()(group).group)[1] for group in groups]
    assert taken != [kept(LongestRight(seed=1)(group).group)[1] for group in groups]
