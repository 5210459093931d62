"""rl-scaling-vlm: who reflects, what is foreign, and what has no end; numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.format import Formatted
from strop.filter.rewards.from_environment import Earned
from strop.recipes.system.rl_scaling_vlm import ForeignScript, Reflects, WholeOrLess
from strop.training.advantages.token_returns import TokenReturns
from strop.types import Group, Origin, Outcome
from tests.building import TASK, make_group
from tests.filter.completions import said


def judged(completions: list[str], right: list[float]) -> Group:
    group = said(TASK, *completions)
    for rollout, score in zip(group.rollouts, right, strict=True):
        rollout.rewards, rollout.turn_rewards = {"outcome": score}, (score,)
        rollout.facts["success"] = score
    return group


def test_the_cards_five_shares_are_all_a_half() -> None:
    """2 of 4 reflect, of which 1 is right; of the other 2 also 1."""
    completions = ["wait, 3", "Wait! 4", "plain", "2"]
    metrics = Reflects().learn([judged(completions, [1.0, 0.0, 1.0, 0.0])])
    names = ("reflecting", "reflecting_of_right", "reflecting_of_wrong", "right_of_reflecting", "right_of_others")
    assert [metrics[name] for name in names] == [0.5] * 5 and metrics["says/wait"] == 2.0
    swapped = Reflects().learn([judged(completions[::-1], [0.0, 1.0, 0.0, 1.0])])
    assert swapped == metrics


def test_each_share_has_its_own_denominator() -> None:
    """3 rollouts: two right ones of which 1 reflects, one wrong one that does not. Others' rollouts do not count."""
    group = judged(["re-check: 2", "2", "3", "wait"], [1.0, 1.0, 0.0, 0.0])
    group.rollouts[3].origin = Origin.TEACHER
    assert Reflects().learn([group]) == {
        "reflecting": pytest.approx(1 / 3),
        "reflecting_of_right": 0.5,
        "reflecting_of_wrong": 0.0,
        "right_of_reflecting": 1.0,
        "right_of_others": 0.5,
        "says/re-check": 1.0,
    }
    assert "right_of_reflecting" not in Reflects().learn([judged(["2"], [1.0])]), "a share of nothing is missing"
    assert Reflects().learn([]) == {}


def test_words_are_whole_words() -> None:
    group = said(TASK, "poetry and waiters", "not yet", "CHECK AGAIN", "checkagain", "")
    assert Reflects()(group) == [0.0, 1.0, 1.0, 0.0, 0.0]
    with pytest.raises(ConfigurationError, match="at least 1 word"):
        Reflects(())
    with pytest.raises(ConfigurationError, match="none that is empty"):
        Reflects(("wait", " "))


def test_foreign_script_is_a_share_of_characters() -> None:
    assert ForeignScript()(said(TASK, "ab一鿿", "abc", "", "ー䷿ꀀ")) == [0.5, 0.0, 0.0, 0.0]
    assert ForeignScript().weight == -0.1
    assert ForeignScript().is_inline and Reflects().is_inline and WholeOrLess((Earned(),)).is_inline


def test_what_has_no_end_is_worth_less_than_nothing_though_it_is_right() -> None:
    group = judged(["<think>1</think>2", "<think>1</think>2", "一", "2"], [1.0, 1.0, 0.0, 1.0])
    group.rollouts[1].outcome = Outcome.TRUNCATED
    reward = WholeOrLess((Earned(), Formatted(weight=0.5), ForeignScript()), instead=-0.2)
    assert reward(group) == pytest.approx([1.5, -0.2, -0.1, 1.0])
    # the last completion has one token
    assert replace(reward, least=2)(group) == pytest.approx([1.5, -0.2, -0.2, -0.2])
    assert replace(reward, least=1)(group)[3] == 1.0
    with pytest.raises(ConfigurationError, match="needs parts"):
        WholeOrLess(())
    with pytest.raises(ConfigurationError, match="least >= 0, got 1 and -1"):
        WholeOrLess((Earned(),), least=-1)


def test_credit_is_centred_where_the_release_adds_the_mean_again() -> None:
    """Returns 1 1 0 0: the release's are 1.366 and -.366; centred, by the spread of all tokens, 1 and -1."""
    group = make_group([1.0, 1.0, 0.0, 0.0])
    TokenReturns(kl=0.0)([group])
    found = [float(rollout.advantages[0]) for rollout in group.rollouts if rollout.advantages is not None]
    assert found == pytest.approx([1.0, 1.0, -1.0, -1.0])
