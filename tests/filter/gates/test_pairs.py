"""Which two rollouts become a pair: DivPO's and iterative DPO's rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.objective.divpo import DiversePair, surprisal
from strop.recipes.objective.iterative_dpo import LongestCorrectPair, iterative_dpo
from strop.recipes.setting import Setting
from strop.types import Group, Message, Outcome
from tests.building import make_group, turn


def kept(group: Group | None) -> list[str]:
    assert group is not None
    return [rollout.id for rollout in group.rollouts]


def with_diversity(rewards: list[float], diversity: list[float]) -> Group:
    """Rollouts of two tokens whose mean log-probability is minus the diversity."""
    group = make_group(rewards)
    for rollout, each in zip(group.rollouts, diversity, strict=True):
        rollout.turns = (replace(turn(2), logprobs=np.array([-each - 0.5, -each + 0.5], dtype=np.float32)),)
    return group


def test_the_rarest_good_against_the_commonest_bad() -> None:
    group = with_diversity([1.0, 0.95, 0.2, 0.0], [1.0, 3.0, 5.0, 2.0])
    assert [surprisal(rollout) for rollout in group.rollouts] == pytest.approx([1.0, 3.0, 5.0, 2.0])
    assert kept(DiversePair(0.1)(group).group) == ["0-1", "0-3"]
    assert kept(DiversePair(0.3)(group).group) == ["0-1", "0-3"]  # 0.2 counts as bad, too, and is rarer
    assert kept(DiversePair(0.0)(group).group) == kept(BestAndWorst()(group).group) == ["0-0", "0-3"]


def test_binary_rewards_split_by_correctness_and_equals_make_no_pair() -> None:
    group = with_diversity([1.0, 0.0, 1.0, 0.0], [1.0, 9.0, 2.0, 0.5])
    assert kept(DiversePair()(group).group) == ["0-2", "0-3"]
    assert DiversePair()(make_group([1.0, 1.0])).reason == "all rewards are 1"
    assert DiversePair()(make_group([1.0, 0.0], failed=[0, 1])).group is None
    with pytest.raises(ConfigurationError, match=r"share < 0.5, so that good and bad do not overlap, got 0.5"):
        DiversePair(0.5)


def answered(scores: list[int], lengths: list[int]) -> Group:
    """1 right, 0 wrong, -1 without an answer."""
    return make_group([float(score) for score in scores], lengths)


def test_the_longest_right_against_one_without_an_answer() -> None:
    assert kept(LongestCorrectPair()(answered([1, 1, 0, -1], [5, 9, 7, 3])).group) == ["0-1", "0-3"]
    assert kept(LongestCorrectPair()(answered([1, 0], [5, 9])).group) == ["0-0", "0-1"]


def test_two_wrong_ones_are_no_pair_and_a_wrong_one_is_better_than_none() -> None:
    assert LongestCorrectPair()(answered([0, 0], [3, 5])).group is None
    assert kept(LongestCorrectPair()(answered([0, -1, 0], [3, 9, 5])).group) == ["0-2", "0-1"]


def test_a_right_rollout_that_was_cut_off_is_not_chosen() -> None:
    group = answered([1, 1, 0], [3, 9, 5])
    group.rollouts[1].outcome = Outcome.TRUNCATED
    assert kept(LongestCorrectPair()(group).group) == ["0-0", "0-2"]


def test_rewards_are_told_as_they_were_paid_and_say_who_is_preferred() -> None:
    """Graded by the recipe's own reward: a finished completion that says nothing after its working has no answer."""
    (reward,) = iterative_dpo(Setting()).rewards
    group = make_group([0.0] * 3, [4, 6, 5], turn_rewards=[(0.0,)] * 3)
    for rollout, text in zip(group.rollouts, ("<think>1</think>3", "<think>1+1=2</think>", "7"), strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", text)),)
    group.rollouts[2].outcome = Outcome.TRUNCATED
    for rollout, mark in zip(group.rollouts, reward(group), strict=True):
        rollout.reward = mark
    assert [rollout.reward for rollout in group.rollouts] == [0.0, -1.0, -1.0]
    pair = LongestCorrectPair()(group).group
    assert pair is not None and [rollout.reward for rollout in pair.rollouts] == [0.0, -1.0]
    assert all(rollout in group.rollouts for rollout in pair.rollouts)  # the ledger's rows are not rewritten


def test_nothing_to_prefer_is_dropped_with_its_counts() -> None:
    assert LongestCorrectPair()(answered([1, 1], [1, 2])).reason == "no pair in 2 right, 0 wrong, 0 without answer"
    assert LongestCorrectPair()(answered([-1, -1], [1, 2])).group is None


def test_the_rejected_one_is_taken_by_a_probability_that_repeats() -> None:
    groups = [replace(answered([1, 0, 0, 0], [9, 1, 1, 1]), number=number) for number in range(30)]
    taken = [kept(LongestCorrectPair()(group).group)[1] for group in groups]
    assert set(taken) == {"0-1", "0-2", "0-3"}
    assert taken == [kept(LongestCorrectPair()(group).group)[1] for group in groups]
    assert taken != [kept(LongestCorrectPair(seed=1)(group).group)[1] for group in groups]
