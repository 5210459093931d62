"""Think-RM: the card's numbers, sides that do not matter, and verdicts that cannot be read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from strop.errors import LLMClientError
from strop.filter.scoring import Scorer
from strop.recipes.reward.think_rm import VERDICT, Given, PairwiseLead, leads
from strop.roles import LLMClient
from strop.standins.judges.comparisons import compared
from strop.text.llm_prompt import parts_of, question, signed
from strop.types import Group, Message, Outcome, Sampling
from tests.building import advantages_of, make_group


def differences(scores: Sequence[float]) -> np.typing.NDArray[np.float64]:
    ahead = np.subtract.outer(np.array(scores), np.array(scores))
    np.fill_diagonal(ahead, np.nan)
    return ahead


def test_differences_of_scores_are_grpo_with_the_unbiased_spread() -> None:
    found = leads(differences([1.0, 2.0, 4.0, 3.0]))
    assert found == pytest.approx([-1.1619, -0.3873, 1.1619, 0.3873], abs=1e-4)
    assert sum(leads(differences([0.3, -2.0, 7.0]))) == pytest.approx(0.0, abs=1e-12)
    assert leads(differences([2.0, 2.0, 2.0])) == [0.0] * 3, "no spread, no advantage"
    assert leads(np.full((1, 1), np.nan)) == [0.0], "alone it is ahead of nobody"


def test_missing_pairs_are_not_counted() -> None:
    """d_01 = 3 is not known: 0 and 1 have one sibling each, 2 has both; four of six ordered pairs are known."""
    ahead = differences([3.0, 0.0, 1.0])
    ahead[0, 1] = ahead[1, 0] = np.nan
    spread = math.sqrt((4 + 4 + 1 + 1) / (2 * 4) + 1e-6)
    assert leads(ahead) == pytest.approx([2 / 2 / spread, -1 / 2 / spread, (-2 + 1) / 3 / spread])
    ahead[0, 2] = ahead[2, 0] = np.nan
    assert math.isnan(leads(ahead)[0])


@dataclass(frozen=True)
class Lengths(LLMClient):
    """Prefers longer completions; says nothing about those with a '?', and fails for those with '!'."""

    heard: list[tuple[str, str]] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        parts = parts_of(messages[0].content)
        first, second = parts["completion"], parts["other"]
        self.heard.append((first, second))
        if "!" in first + second:
            raise LLMClientError("no")
        lead = max(min(len(first) - len(second), 3), -3)
        verdict = signed(messages[0].content, f"verdict: {lead}")
        return "hm" if "?" in first + second else f"verdict: 3\nno,\n{verdict}"


def group_of(*completions: str) -> Group:
    group = make_group([0.0] * len(completions))
    for rollout, completion in zip(group.rollouts, completions, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", completion)),)
    return group


def test_every_pair_is_judged_once_and_its_side_is_left_to_probability() -> None:
    judge, group = Lengths(), group_of("a", "bb", "dddd", "ccc")
    asyncio.run(Scorer([PairwiseLead(judge)])(group))
    assert [rollout.reward for rollout in group.scored] == pytest.approx([-1.1619, -0.3873, 1.1619, 0.3873], abs=1e-4)
    assert len(judge.heard) == 6 and len({frozenset(pair) for pair in judge.heard}) == 6
    Given()([group])
    assert advantages_of(group) == pytest.approx([rollout.reward for rollout in group.scored], abs=1e-6)
    sides = Lengths()
    for number in range(60):
        asyncio.run(PairwiseLead(sides)(group_of(f"a{number}", f"b{number}")))
    assert 15 < sum(first.startswith("a") for first, _ in sides.heard) < 45


def test_whoever_nobody_can_judge_has_no_reward() -> None:
    group = group_of("a", "bb?", "ccc", "!")
    asyncio.run(Scorer([PairwiseLead(Lengths())])(group))
    assert [rollout.outcome is Outcome.FAILED for rollout in group.rollouts] == [False, True, False, True]
    assert [rollout.reward for rollout in group.scored] == pytest.approx(
        [-1 / math.sqrt(2), 1 / math.sqrt(2)], abs=1e-5
    )


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("verdict: 2", 2), ("so\nverdict: -3 .", -3), ("verdict:+1", 1), ("verdict: 1\nverdict: 3", 3)],
)
def test_verdicts_are_read(text: str, verdict: float) -> None:
    assert VERDICT.read(text) == verdict


@pytest.mark.parametrize("text", ["", "verdict: 4", "verdict: 12", "verdict: good"])
def test_what_is_no_verdict_is_missing(text: str) -> None:
    assert VERDICT.read(text) is None


@pytest.mark.parametrize(
    ("completion", "other", "verdict"),
    [
        ("<think>1+1=2</think>2", "<think>1+1=3</think>3", 2),  # both answer what they worked out, one holds
        ("<think>1+1=2</think>2", "2", 3),  # shown against nothing
        ("2", "<think>1+1=2</think>2", -3),
        ("<think>1+1=2</think>3", "<think>1+1=2</think>2", -2),
        ("2", "3", 1),  # nothing tells them apart, and 0 is no verdict
    ],
)
def test_the_rule_checks_calculations(completion: str, other: str, verdict: int) -> None:
    assert VERDICT.read(compared(question("?", task="1+1=?", completion=completion, other=other))) == verdict


def test_half_a_character_costs_its_siblings_nothing() -> None:
    """It has no bytes, and nobody sees it: a judge reads the completion without it."""
    scores = asyncio.run(PairwiseLead(Lengths())(group_of("aa\ud800", "a", "aaa")))
    assert scores == pytest.approx(asyncio.run(PairwiseLead(Lengths())(group_of("aa", "a", "aaa"))))
