"""AutoRefine's and SEM's rewards by hand."""

from __future__ import annotations

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.search_answer_f1 import Refined
from strop.recipes.agent.sem import SearchOrAnswer
from strop.text.overlap import contains, token_f1
from strop.types import Group, Message, Outcome, Rollout, Task, ToolCall, Turn

CALL = ToolCall("search", '{"query": "x"}')


def rollout(*completions: str, right: str = "tiku", outcome: Outcome = Outcome.FINISHED) -> Rollout:
    """A completion with a score of a call holds one."""
    none = np.zeros(0, np.int64)
    said = [Message("assistant", completion, (CALL,) if "<call>" in completion else ()) for completion in completions]
    told = [(), *([(Message("tool", "it is tiku"),)] * (len(said) - 1))] if said else []
    turns = tuple(
        Turn(none, none, np.zeros(0, np.float32), none, message, told=heard)
        for message, heard in zip(said, told, strict=True)
    )
    return Rollout("0/0", Task((Message("user", "q?"),), right, "search"), turns, outcome)


def earned(reward: Refined | SearchOrAnswer, *rollouts: Rollout) -> list[float]:
    return reward(Group(0, rollouts[0].task, list(rollouts)))


def test_f1_of_words_by_hand() -> None:
    """Two of three given words are right and two of two are there: 2 * 2 / (3 + 2)."""
    assert token_f1("the Red fox, runs", "red fox") == pytest.approx(0.8)
    assert token_f1("a cat", "red fox") == token_f1("", "red") == token_f1("red", "") == 0.0
    assert token_f1("red red", "red") == pytest.approx(2 / 3)
    assert contains("It is the Red Fox.", "red fox") and not contains("redfox", "red") and not contains("x", "the")


SEARCH = "<call>search x</call>"


def test_a_noted_answer_counts_only_where_the_given_one_is_worth_nothing() -> None:
    noted = f"<think>it is tiku</think>{SEARCH}"
    assert earned(Refined(), rollout(SEARCH, noted, "kesu")) == [0.1]
    assert earned(Refined(), rollout(SEARCH, noted, "tiku a1 a2 a3 a4 a5")) == pytest.approx([2 / 7])  # not + 0.1
    assert earned(Refined(), rollout(SEARCH, "<think>no</think>tiku")) == [1.0]
    assert earned(Refined(), rollout(SEARCH, "<think>kesu</think>kesu")) == [0.0]


def test_a_thought_before_anything_was_found_is_no_note() -> None:
    early = rollout(f"<think>tiku</think>{SEARCH}", "kesu")
    assert earned(Refined(), early) == [0.0] and early.facts["refined"] == 0.0


def test_without_an_answer_a_note_is_worth_nothing() -> None:
    noted = "<think>tiku</think>"
    cut = rollout(SEARCH, f"{noted}kesu", outcome=Outcome.TRUNCATED)
    cases = [rollout(SEARCH, noted), rollout(SEARCH, f"{noted}{SEARCH}"), cut]
    assert earned(Refined(), *cases) == [0.0, 0.0, 0.0]
    assert [case.facts["refined"] for case in cases] == [1.0, 1.0, 1.0]
    assert earned(Refined(0.3), rollout(SEARCH, f"{noted}kesu"), rollout("kesu")) == [0.3, 0.0]
    assert earned(Refined(), rollout(SEARCH, "<think>1</think>2", right="11")) == [0.0]  # a part of a word is none


def test_who_knows_does_not_search() -> None:
    """The same last answer: a right first one earns less with a search than without, a wrong one more."""
    known, needless = rollout("tiku"), rollout("tiku<call>search x</call>", "tiku")
    lucky, needed = rollout("?"), rollout("?<call>search x</call>", "tiku")
    assert earned(SearchOrAnswer(), known, needless, lucky, needed) == [1.0, 0.0, 0.0, 1.0]
    assert [each.facts["first_right"] for each in (known, needless, lucky, needed)] == [1.0, 1.0, 0.0, 0.0]
    assert [each.facts["searched"] for each in (known, needless, lucky, needed)] == [0.0, 1.0, 0.0, 1.0]
    assert [each.facts["needless"] for each in (known, needless, lucky, needed)] == [0.0, 1.0, 0.0, 0.0]


def test_a_half_right_first_answer_is_known() -> None:
    """F1 of `tiku kesu mora` is 2 / 4: known at a half, not at more."""
    half = rollout("tiku kesu mora")
    searched = rollout("tiku kesu mora<call>search x</call>", "tiku")
    assert earned(SearchOrAnswer(0.5), half, searched) == [0.5, 0.0]
    assert earned(SearchOrAnswer(0.6), half, searched) == [0.0, 1.0]


def test_bad_form_earns_nothing() -> None:
    no_first = rollout("<call>search x</call>", "tiku")
    no_last = rollout("?<call>search x</call>", "<think>tiku")
    cut = rollout("?<call>search x</call>", "tiku", outcome=Outcome.TRUNCATED)
    calling = rollout("?<call>search x</call>", "tiku<call>search x</call>")
    assert earned(SearchOrAnswer(), no_first, no_last, cut, calling, rollout()) == [0.0] * 5
    assert earned(SearchOrAnswer(), rollout("<think>so</think>?<call>search x</call>", "tiku")) == [1.0]
    with pytest.raises(ConfigurationError, match="known above 0, got 0"):
        SearchOrAnswer(0.0)


def test_they_need_no_process_of_their_own() -> None:
    assert Refined().is_inline and SearchOrAnswer().is_inline and Refined().weight == SearchOrAnswer().weight == 1.0
