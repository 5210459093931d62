"""Criteria, rubrics with vetoes, and comparisons: numbers by hand, judges that say nonsense, rules that stand in."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, permutations
from typing import Any, ClassVar

import pytest

from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.criteria import criteria_in
from strop.filter.judges.pairwise_criteria import Distinction, differences_in, preference
from strop.filter.scoring import Scorer
from strop.recipes.reward.carmo import ContextCriteria
from strop.recipes.reward.openrs import RubricWins
from strop.recipes.reward.rubric_anchors import RubricAnchors
from strop.roles import LLMClient, Reward
from strop.standins.judges.criteria import anchored, compared_by_criteria, guarded, scored_by_criteria, written_criteria
from strop.text.llm_prompt import parts_of, question
from strop.types import ZERO_TO_ONE, Group, Message, Outcome, Sampling, ScoreRange
from tests.recipes.reward.test_rlcf import saying


@dataclass
class Tells(LLMClient):
    """What a function makes of the parts of a question."""

    rule: Callable[[dict[str, str]], str]
    asked: list[dict[str, str]] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self.asked.append(parts_of(messages[-1].content))
        return self.rule(self.asked[-1])


def says(text: str) -> Tells:
    return Tells(lambda parts: text)


def scores(reward: Reward, group: Group) -> list[float | None]:
    asyncio.run(Scorer([reward], seconds=1000)(group))
    return [each.reward if each.outcome is Outcome.FINISHED else None for each in group.rollouts]


NONSENSE = ["", "good", "1: nan\n2: 3", "1: 50", "1: 50\n2: 50\n3: 50", "1: 50\n1: 50", "1: inf\n2: 0", "2: 50\n3: 50"]


def test_the_mean_over_criteria_of_the_task() -> None:
    judge = Tells(lambda parts: "1: 80\n2: 20" if parts["completion"] == "x" else "2: 100\n1: 300 %")
    task_generator = says("Criteria:\n- It adds.\n2. It checks.\n- It adds.\nwell")
    group = saying("x", "y")
    assert scores(ContextCriteria(task_generator, judge), group) == pytest.approx([0.5, 1.0])
    assert len(task_generator.asked) == 1 and list(task_generator.asked[0]) == ["task"], (
        "made from the task alone, once for all"
    )
    assert {each["requirements"] for each in judge.asked} == {"1: It adds.\n2: It checks."}
    assert group.rollouts[0].facts == {"item/0": 0.8, "item/1": 0.2, "criteria": 2.0}


def test_the_order_of_completions_changes_no_score() -> None:
    found = set()
    for order in permutations(("1+1=2", "1+1=3", "2")):
        reward = ContextCriteria(Tells(lambda parts: "- Every calculation holds."), Tells(_scored))
        found.add(tuple(sorted(zip(order, scores(reward, saying(*order)), strict=True))))
    assert len(found) == 1


def _scored(parts: dict[str, str]) -> str:
    return scored_by_criteria(question("?", **parts))


@pytest.mark.parametrize("said", NONSENSE)
def test_nonsense_about_one_completion_fails_that_rollout_alone(said: str) -> None:
    judge = Tells(lambda parts: said if parts["completion"] == "x" else "1: 40\n2: 60")
    for reward in (ContextCriteria(says("- a\n- b"), judge), RubricAnchors(says("1: a\n1: b"), judge, 1e-9)):
        group = saying("x", "y")
        assert scores(reward, group) == [None, pytest.approx(0.5)]
        assert re.search(
            "need one score for each of 2 requirements, got|no verdict of the judge", group.rollouts[0].error
        )
        assert group.rollouts[0].rewards == {} and not group.rollouts[1].error


def test_without_criteria_there_is_no_reward_and_no_zero() -> None:
    for reward, error in (
        (ContextCriteria(says("none"), says("1: 50")), "there is no criterion for task"),
        (RubricAnchors(says("veto: a\n-3: b"), says("1: 50")), "has no dimension with a weight"),
    ):
        group = saying("x", "y")
        assert scores(reward, group) == [None, None] and error in group.rollouts[1].error
    silent = says("")
    for empty in (ContextCriteria(silent, silent), RubricAnchors(silent, silent)):
        assert asyncio.run(empty(saying())) == [] and not silent.asked, "nobody is asked about nothing"


def anchors(told: str, rubric: str = "3: a\n1: b\nveto: c", saturation: float = 2.0) -> Any:
    group = saying("x")
    return scores(RubricAnchors(says(rubric), says(told), saturation), group)[0], group.rollouts[0].facts


def test_saturation_and_vetoes_by_hand() -> None:
    """(1 - e^-1) / (1 - e^-2) = 0.731059 at one half."""
    half = (1 - math.exp(-1)) / (1 - math.exp(-2))
    assert half == pytest.approx(0.731059, abs=1e-6)
    assert anchors("1: 100\n2: 50\n3: 100")[0] == pytest.approx((3 + half) / 4)
    assert anchors("1: 100\n2: 0\n3: 50")[0] == pytest.approx(0.75), "a veto is met from one half on"
    value, facts = anchors("1: 100\n2: 100\n3: 49.9")
    assert value == 0.0 and facts == {"item/0": 1.0, "item/1": 1.0, "vetoed": 1.0}, "exactly 0"
    for rubric in ("3: a\n1: b", "1: a\n100: b"):
        assert anchors("1: 50\n2: 50", rubric)[0] == pytest.approx(half), "all alike: the same for any weights"
    assert anchors("1: 100\n2: 100\n3: 0\n4: 100", "1: a\n2: b\nveto: c\nVETO: d")[0] == 0.0


def test_each_dimension_rises_less_and_less() -> None:
    reward = RubricAnchors(says(""), says(""))
    values = [reward.saturated(step / 10) for step in range(11)]
    gains = [after - before for before, after in pairwise(values)]
    assert values[5] == pytest.approx(0.731059, abs=1e-6)
    assert values[0] == 0 and values[-1] == 1 and gains == sorted(gains, reverse=True) and min(gains) > 0
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigurationError, match="saturation above 0 and below 700"):
            RubricAnchors(says(""), says(""), wrong)


def test_how_comparisons_are_read() -> None:
    text = "Well:\n- core, first, 3: right\nFATAL, Second, 0.5: It lies.\nhighlight, first, 0: alike\ncore, tie, 3: x"
    found = [Distinction("core", 3.0), Distinction("fatal", -0.5), Distinction("highlight", 0.0)]
    assert differences_in(text) == found
    assert differences_in("core, first, nan: x\ncore, both, 3: x\nfirst, 3: x") == []


def test_what_code_makes_of_comparisons() -> None:
    core, important, liked = Distinction("core", 2.0), Distinction("important", -3.0), Distinction("highlight", 1.0)
    assert preference([core, important, liked]) == pytest.approx((5 * 2 - 2 * 3 + 1) / 8)
    assert preference([core, Distinction("important", 0.0)]) == 2.0, "what is alike weighs nothing"
    assert preference([core] * 9 + [Distinction("fatal", -0.5)]) == -0.5, "however many core ones"
    assert preference([]) == 0.0 == preference([Distinction("core", 0.0)])
    for some in combinations((core, important, liked, Distinction("fatal", 1.5)), 2):
        assert preference([Distinction(each.kind, -each.value) for each in some]) == -preference(some)


def longer(parts: dict[str, str]) -> str:
    gap = len(parts["first"]) - len(parts["second"])
    return f"core, {'first' if gap > 0 else 'second'}, {abs(gap)}: length"


def test_win_rates_by_hand() -> None:
    group = saying("a", "bbb", "cc", "dd")
    assert scores(RubricWins(Tells(longer)), group) == pytest.approx([0.0, 1.0, 0.5, 0.5])
    assert [each.facts["decided"] for each in group.rollouts] == pytest.approx([1, 1, 2 / 3, 2 / 3])
    biased = says("core, first, 5: it comes first")
    assert scores(RubricWins(biased), saying("a", "b", "c")) == [0.5] * 3, "a bias for a place is a tie"
    assert len(biased.asked) == 6
    alike = says("core, first, 5: it comes first")
    assert scores(RubricWins(alike), saying("a", "a")) == [0.5] * 2 and not alike.asked


@dataclass(frozen=True)
class Equals(Reward):
    """1 for one text, else 0."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    text: str
    is_inline: bool = True

    def __call__(self, group: Group) -> list[float]:
        return [float(each.completion == self.text) for each in group.rollouts]


def test_who_alone_is_right_wins_without_a_judge() -> None:
    judge = Tells(longer)
    assert scores(RubricWins(judge, Equals("a")), saying("a", "bbb", "cc")) == pytest.approx([1.0, 0.5, 0.0])
    assert len(judge.asked) == 2 and scores(RubricWins(judge, Equals("z")), saying("a", "bb")) == [0.0, 1.0]


def test_a_comparison_that_failed_is_left_out_and_no_tie() -> None:
    def moody(parts: dict[str, str]) -> str:
        return "who knows" if "z" in parts["first"] + parts["second"] else longer(parts)

    group = saying("a", "bb", "zzz")
    assert scores(RubricWins(Tells(moody)), group) == [0.0, 1.0, None]
    assert "returned nan" in group.rollouts[2].error and group.rollouts[2].rewards == {}
    group = saying("a", "bb")
    assert scores(RubricWins(says("nan")), group) == [None, None]
    assert "or several different ones, in 'nan'" in group.rollouts[0].error
    assert scores(RubricWins(Tells(longer)), saying("a")) == [None], "alone there is nobody to beat"

    def broken(parts: dict[str, str]) -> str:
        if "a" in parts["first"] + parts["second"]:
            raise LLMClientError("no")
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(RubricWins(Tells(broken))(saying("a", "bb", "ccc")))


TASK_TEXT = "47+12+30=?"
RIGHT, SLIP = "<think>47+12=59 59+30=89</think>89", "<think>47+12=60 60+30=90</think>90"


def test_rules_stand_in() -> None:
    short = written_criteria(question("?", task="47+12=?"))
    assert len(criteria_in(short)) == 2 and len(criteria_in(written_criteria(question("?", task=TASK_TEXT)))) == 3
    listed = "1: Every calculation holds.\n2: No calculation stands there twice."
    for completion, said in (
        (RIGHT, "1: 100.00\n2: 100.00"),
        (SLIP, "1: 50.00\n2: 100.00"),
        ("1+1=2 1+1=2", "1: 100.00\n2: 0.00"),
    ):
        assert scored_by_criteria(question("?", task=TASK_TEXT, completion=completion, requirements=listed)) == said
    assert guarded("").startswith(anchored("")) and guarded("").count("veto") == 3
    found = differences_in(compared_by_criteria(question("?", task=TASK_TEXT, first=SLIP, second=RIGHT)))
    assert [each.value for each in found] == [0, -2.5, 0, 0] and preference(found) == -2.5
    assert (
        preference(differences_in(compared_by_criteria(question("?", task=TASK_TEXT, first=RIGHT, second="<think>"))))
        == 5
    )
