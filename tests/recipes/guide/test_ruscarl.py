"""A rubric's points: numbers by hand, what nobody judged, who fails, and the rules that stand in."""

from __future__ import annotations

import pytest

from strop.errors import LLMClientError
from strop.filter.judges.checklist_items import FACT, Item
from strop.filter.judges.readers import YES_NO
from strop.filter.judges.rubric import items_in, rubric_of
from strop.filter.scoring import Scorer
from strop.recipes.guide.ruscarl import RubricPoints
from strop.standins.judges.outcomes import judged_rubric, written_rubric
from strop.text.llm_prompt import question
from strop.types import Outcome
from tests.building import TASK
from tests.clock import run_virtually
from tests.recipes.reward.test_rlcf import Says, saying

RUBRIC = {"": "5: It adds.\n3: It checks.\n-4: It guesses.\nnonsense\n0: nothing"}


def test_how_a_rubric_is_read() -> None:
    assert items_in(RUBRIC[""]) == [Item(5, "It adds."), Item(3, "It checks."), Item(-4, "It guesses.")]
    assert [YES_NO.read(text) for text in ("Yes.", "no, it is not, yes", "yesterday", "")] == [1, 0, None, None]


@pytest.mark.parametrize(
    ("adds", "checks", "guesses", "paid"),
    [("yes", "yes", "no", 1.0), ("yes", "no", "yes", 1 / 8), ("no", "no", "yes", -0.5), ("no", "no", "no", 0.0)],
)
def test_points_by_hand(adds: str, checks: str, guesses: str, paid: float) -> None:
    """Of 8 points: 5 + 3; 5 - 4; -4; none."""
    judge = Says({"It adds.": adds, "It checks.": checks, "It guesses.": guesses})
    group = saying("12")
    run_virtually(Scorer([RubricPoints(Says(RUBRIC), judge)], seconds=1000)(group))
    (rollout,) = group.rollouts
    assert rollout.reward == pytest.approx(paid)
    assert rollout.facts[f"{FACT}2"] == float(guesses == "yes") and len(judge.asked) == 3


@pytest.mark.parametrize("said", ["perhaps", "fails"])
def test_what_nobody_judged_is_no_reward(said: str) -> None:
    judge = Says({"It adds.": said, "It checks.": "yes", "It guesses.": "no"})
    group = saying("12")
    run_virtually(Scorer([RubricPoints(Says(RUBRIC), judge)], seconds=1000)(group))
    assert group.rollouts[0].outcome is Outcome.FAILED and group.rollouts[0].rewards == {}


def test_a_rubric_without_points_to_earn_is_none() -> None:
    for text in ("-4: It guesses.", "what?"):
        with pytest.raises(LLMClientError, match=f"no item with points to earn in the rubric for task {TASK.id}"):
            run_virtually(rubric_of(TASK, Says({"": text})))


def test_nothing_is_asked_about_nobody() -> None:
    task_generator = Says(RUBRIC)
    assert run_virtually(RubricPoints(task_generator, task_generator)(saying()))[0] == [] and not task_generator.asked


def test_rules_know_the_steps_of_a_sum() -> None:
    assert written_rubric(question("write", task="47+12+30=?")) == "5: 47+12=59\n5: 59+30=89"
    completion = "<think>47+12=59 59+30=99</think>99"
    assert judged_rubric(question("?", task="47+12+30=?", completion=completion, requirement="47+12=59")) == "yes"
    assert judged_rubric(question("?", task="47+12+30=?", completion=completion, requirement="59+30=89")) == "no"
    assert judged_rubric(question("?", task="47+12+30=?", completion="147+12=590", requirement="47+12=59")) == "no"
