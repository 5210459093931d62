"""Sentences judged one by one: how they are cut and read, what they earn, and where the advantage goes."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError, RewardError
from strop.filter.paid_text import Paid
from strop.filter.scoring import Scorer
from strop.recipes.reward.trm import (
    SentenceStandard,
    SentenceVerdict,
    SentenceVerdicts,
    VerdictsRight,
    numbered,
    sentences,
    trm,
    verdicts_in,
)
from strop.roles import Reward
from strop.standins.judges.steps import judged_sentences
from strop.text.llm_prompt import question
from strop.types import Group, IntArray, Message, Outcome, Rollout
from tests.building import TASK, turn
from tests.filter.judges.test_criteria import Tells, says
from tests.recipes.reward.test_rlcf import saying

RIGHT, SLIP = "<think>47+12=59 59+30=89</think>89", "<think>47+12=60 60+31=91</think>90"


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def test_where_sentences_end() -> None:
    assert cut(RIGHT) == ["47+12=59", "59+30=89", "89"]
    assert cut("It is 3.5 m. Is it? Yes!\n\n- so") == ["It is 3.5 m.", "Is it?", "Yes!", "- so"]
    assert cut("") == cut(" \n<think></think> ") == [] and cut("one") == ["one"]
    assert numbered("a  b.\tC") == "1: a b.\n2: C"


def test_verdicts_are_read_as_written() -> None:
    text = (
        "1: faithful; why; correct\n* 2. Unfaithful - it adds; INCORRECT.\n3: faithful\n4: correct\nfaithful; correct"
    )
    assert verdicts_in(text) == {1: SentenceVerdict(True, True), 2: SentenceVerdict(False, False)}
    assert verdicts_in("1: faithful; x; correct\n1: faithful; x; incorrect\n2: faithful correct") == {
        2: SentenceVerdict(True, True)
    }


@pytest.mark.parametrize(
    ("true", "told", "earned"),
    [
        ("faithful; incorrect", "faithful; correct", 0.5),
        ("faithful; incorrect", "faithful; incorrect", 1.5),
        ("faithful; correct", "faithful; correct", 1.0),
        ("unfaithful; incorrect", "faithful; incorrect", 1.0),
        ("unfaithful; correct", "faithful; incorrect", 0.0),
    ],
)
def test_what_a_judge_earns_by_a_sentence(true: str, told: str, earned: float) -> None:
    task = replace(TASK, answer=f"1: {true}\n2: faithful; correct")
    group = replace(saying(f"1: {told}\n2: faithful; correct", f"1: {told}", "so"), task=task)
    assert VerdictsRight()(group) == pytest.approx([(earned + 1) / 2, earned / 2, 0.0])
    if earned == 1.5:
        assert VerdictsRight(bonus=0.25)(group)[1] == pytest.approx(1.25 / 2)


def test_a_task_without_true_verdicts_is_a_mistake_of_the_file() -> None:
    with pytest.raises(RewardError, match="has no verdicts: need lines such as 1: faithful; why; correct"):
        VerdictsRight()(saying("x"))
    with pytest.raises(ConfigurationError, match="bonus >= 0, got nan"):
        VerdictsRight(math.nan)
    with pytest.raises(ConfigurationError, match="trains policy or judge, got 'both'"):
        trm(trains="both")


def places(tokens: IntArray) -> IntArray:
    return np.arange(1, len(tokens) + 1)  # a token is a character


def spelled(*completions: str) -> Group:
    group = saying(*completions)
    for rollout, text in zip(group.rollouts, completions, strict=True):
        rollout.turns = (replace(turn(len(text) + 1), message=Message("assistant", text)),)
    return group


def scored(group: Group, *rewards: Reward) -> list[Rollout]:
    scorer = Scorer(rewards, seconds=100)
    scorer.places = places
    asyncio.run(scorer(group))
    return group.rollouts


def test_each_sentence_is_paid_at_its_end() -> None:
    judge = says("1: faithful; x; correct\n2: unfaithful; x; incorrect\n3: faithful; x; correct")
    (rollout,) = scored(spelled(RIGHT), SentenceVerdicts(judge))
    assert rollout.reward == pytest.approx(2 / 3) and rollout.facts["faithful"] == pytest.approx(2 / 3)
    (only,) = rollout.turns
    paid, ends = (only.aux[name][len(only.prompt) :] for name in ("paid/sentence_verdicts", "span/ends"))
    assert [RIGHT[place] for place in np.flatnonzero(paid)] == ["9", "9"]
    assert np.flatnonzero(ends).tolist() == [14, 23, 33] and np.flatnonzero(paid).tolist() == [14, 33]
    assert judge.asked[0]["completion"] == "1: 47+12=59\n2: 59+30=89\n3: 89"


NONSENSE = ["", "all correct", "1: faithful; x; correct", "1: faithful; nan\n2: faithful; correct"]


@pytest.mark.parametrize("said", NONSENSE)
def test_a_sentence_without_a_verdict_fails_the_rollout(said: str) -> None:
    judge = Tells(lambda parts: said if "x" in parts["completion"] else "1: faithful; x; correct")
    bad, good, empty = scored(spelled("six. Y.", "z.", ""), SentenceVerdicts(judge))
    assert (
        bad.outcome is Outcome.FAILED
        and re.search("need one verdict on each of 2 sentences|no verdict of the judge", bad.error)
        and not bad.rewards
    )
    assert good.reward == 1.0 and empty.reward == 0.0 and not empty.error and len(judge.asked) == 4


class Flat(Reward):
    """One half for each."""

    is_inline = True  # type: ignore[misc,assignment]

    def __call__(self, group: Group) -> list[float | Paid]:
        return [0.5 * (place + 1) for place in range(len(group.rollouts))]


def test_credit_stays_with_a_sentence_and_the_rest_goes_to_all() -> None:
    """Worth: correct + 0.5 for the first, correct + 1 for the second completion; 3 sentences of 1.5, 0.5 and 2."""
    first_right, right = "1: faithful; x; correct\n2: faithful; x; incorrect", "1: faithful; x; correct"
    judge = Tells(lambda parts: first_right if "aa" in parts["completion"] else right)
    group = spelled("aa. B.", "c.")
    scored(group, SentenceVerdicts(judge), Flat())
    SentenceStandard(epsilon=0.0)([group])
    worth = np.array([1.5, 0.5, 2.0])
    standard = (worth - worth.mean()) / worth.std(ddof=1)
    first, second = (rollout.advantages for rollout in group.rollouts)
    assert first is not None and second is not None
    assert first.tolist() == pytest.approx([standard[0]] * 3 + [standard[1]] * 4, abs=1e-6), "the end is of the last"
    assert second.tolist() == pytest.approx([standard[2]] * 3, abs=1e-6)
    SentenceStandard(epsilon=0.5)([group])
    last = group.rollouts[1].advantages
    assert last is not None and last[0] == pytest.approx((2 - 4 / 3) / (math.sqrt(7 / 12) + 0.5), abs=1e-6)
    for rollout in group.rollouts:
        rollout.reward, rollout.turns = 1.0, tuple(replace(each, aux={}) for each in rollout.turns)
    SentenceStandard(epsilon=0.0)([group])
    assert all(rollout.advantages is not None and not rollout.advantages.any() for rollout in group.rollouts)


def test_what_stands_behind_999_sentences_is_one_more() -> None:
    found = sentences("1+1=2\n" * 1005)
    assert len(found) == 1000 and found[998] == (998 * 6, 998 * 6 + 5) and found[999] == (999 * 6, 1005 * 6 - 1)


def test_rules_judge_sentences_of_sums() -> None:
    told = verdicts_in(judged_sentences(question("?", task="47+12+30=?", completion=numbered(RIGHT))))
    assert told == {place: SentenceVerdict(True, True) for place in (1, 2, 3)}
    slipped = verdicts_in(judged_sentences(question("?", task="47+12+30=?", completion=numbered(SLIP))))
    assert [(each.is_faithful, each.is_correct) for each in slipped.values()] == [
        (True, False),
        (False, True),
        (False, False),
    ]
