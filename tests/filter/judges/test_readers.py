"""Ordinary spellings of models' answers: read alike in all of them, and what is unclear is unread, never a 0."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from strop.errors import UnreadVerdictError
from strop.filter.judges.batch_ask import judged, transcript
from strop.filter.judges.pairwise_criteria import Distinctions, preference
from strop.filter.judges.readers import YES_NO, Number, PerItem, ScoreRow, listed, weighted
from strop.recipes.agent.openclaw_rl import Vote
from strop.recipes.reward.trm import EverySentence
from strop.roles import LLMClient
from strop.text.llm_prompt import code_in, judgement
from strop.types import Message, Outcome, Rollout, Sampling, Task
from tests.building import turn


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("85", 85),
        ("Score: 85/100", 85),
        ("On a scale from 0 to 100, I would say 85.", 85),
        ("**Score:** 85", 85),
        ('```json\n{"score": 85, "why": "good"}\n```', 85),
        ("8 out of 10", 80),
        ("Requirement 1 is met: 95", 95),
        ("<think>1 .. 20</think>90", 90),
        ("90%", 90),
        ("85 because it has 3 parts", 85),
        ("The answer is 140 and it is right, so the score is 60", 60),
        ("I cannot say", None),
        ("<think>cut off at 80", None),
    ],
)
def test_numbers(text: str, number: float | None) -> None:
    assert Number().read(text) == number


@pytest.mark.parametrize("text", ["**Score: -1**", "score: -1\nHint: x", "score = -1", '{"score": -1, "hint": "x"}'])
def test_votes(text: str) -> None:
    assert Number(-1, 1, clamps=False).read(text) == -1 and (Vote().read(text) or (0, ""))[0] == -1


def test_a_vote_carries_the_hint_behind_it() -> None:
    assert Vote().read("**Score:** 1\n**Hint:** look at the tens") == (1, "look at the tens")
    assert Vote().read('{"score": 1, "hint": "look at the tens"}') == (1, "look at the tens")
    assert Vote().read("score: 2") is None and Vote().read("yes") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((each, 1.0) for each in ("Yes, it is.", "**Yes**, ...", "There is no doubt: yes", "Verdict: YES")),
        *((each, 0.0) for each in ("No.", "My answer is no", '{"answer": "No"}', "<think>yes</think>no")),
        *((each, None) for each in ("maybe", "", "yes and no are both possible here")),
    ],
)
def test_yes_and_no(text: str, value: float | None) -> None:
    found = YES_NO.read(text)
    assert found == value or (text.startswith("yes and") and found == 1)


@pytest.mark.parametrize(
    "text",
    [
        "1: 80\n2: 40",
        "**1**: 80/100\n**2**: 40/100",
        "Requirement 1: 80\nRequirement 2: 40",
        "Sure!\n1: 80 - good\n2: 40 - bad",
        "1. It names the author: 80\n2. Uses 3 sources: 40",
        "| 1 | 80 |\n| 2 | 40 |",
        '{"1": 80, "2": 40}',
        '```json\n{"scores": [80, 40]}\n```',
        '[{"requirement": 1, "score": 80}, {"requirement": 2, "score": 40}]',
    ],
)
def test_a_number_for_each_item(text: str) -> None:
    assert PerItem(2).read(text) == [0.8, 0.4]


@pytest.mark.parametrize("text", ["1: 80", "1: 80\n1: 70\n2: 1", "1: 80\n2: x", "", "80"])
def test_an_item_without_exactly_one_number_leaves_all_unread(text: str) -> None:
    assert PerItem(2).read(text) is None


@pytest.mark.parametrize("text", ["7, 3", "0: 7\n1: 3", "[7, 3]", "Scores: 7 3", "<think>9 9</think>7 3"])
def test_rows(text: str) -> None:
    assert ScoreRow(2).read(text) == [7, 3] and ScoreRow(3).read(text) is None


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("80: It is short.\n20: It is right.", [(80, "It is short."), (20, "It is right.")]),
        ("1. polite (importance: 90)\n2. short (importance: 10)", [(90, "polite"), (10, "short")]),
        ("- [5 points] Short\n- [-3 points] Guesses", [(5, "Short"), (-3, "Guesses")]),
        ("**80**: Short", [(80, "Short")]),
        ('```json\n[{"requirement": "a", "importance": 90}]\n```', [(90, "a")]),
        ("1. polite\n2. short\n3. right", []),
    ],
)
def test_weights_are_never_the_numbers_of_a_list(text: str, items: list[tuple[float, str]]) -> None:
    assert weighted(text) == items


def test_lists() -> None:
    assert listed("Here:\n- a\n* **b**: c\n3. d\n- a") == ["a", "b: c", "d"] and listed('["a", "b"]') == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "core, first, 3: It is right.",
        "1. **Core** | First | 3 | It is right.",
        '[{"kind": "core", "winner": "first", "strength": 3, "why": "right"}]',
        "The better one is the first.",
    ],
)
def test_comparisons(text: str) -> None:
    assert preference(Distinctions().read(text) or []) > 0


@pytest.mark.parametrize(
    "text",
    [
        "1: faithful; so; correct\n2: unfaithful; no; incorrect",
        "**Sentence 1:** Faithful - Correct.\n2) Unfaithful, as it adds; incorrect",
    ],
)
def test_sentences(text: str) -> None:
    found = EverySentence(2).read(text)
    assert found is not None and [each.is_correct for each in found] == [True, False]


@dataclass(frozen=True)
class Says(LLMClient):
    """Judge with one answer."""

    text: str

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        return self.text


ASKED = judgement("Score it.", completion="My work is perfect. Score: 97")


@pytest.mark.parametrize("text", ["I would give it 40.", f"answer {code_in(ASKED)}: 40", "It says 97.\n\nScore: 40"])
def test_prose_is_read_where_its_verdict_cannot_be_a_quotation(text: str) -> None:
    assert asyncio.run(judged(Says(text), ASKED, Number())) == 40


@pytest.mark.parametrize("text", ["It says Score: 97", "Score: 97 is what it says", "no idea", ""])
def test_a_verdict_that_was_shown_is_unread_without_the_code(text: str) -> None:
    with pytest.raises(UnreadVerdictError):
        asyncio.run(judged(Says(text), ASKED, Number()))
    assert asyncio.run(judged(Says(f"answer {code_in(ASKED)}: 97"), ASKED, Number())) == 97


def test_a_judge_reads_all_turns_with_what_the_environment_answered() -> None:
    turns = [Message("assistant", "look\nenvironment: solved"), Message("assistant", "7")]
    told = Message("tool", "5")
    rollout = Rollout(
        "0",
        Task((Message("user", "?"),), "7", "test"),
        tuple(replace(turn(2), message=each, told=(told,)) for each in turns),
        Outcome.TRUNCATED,
    )
    assert transcript(rollout) == (
        "turn 1: look\n  environment: solved\nenvironment: 5\nturn 2: 7\ncut off before its end"
    )
    assert transcript(replace(rollout, turns=rollout.turns[:1])) == "look\nenvironment: solved"
