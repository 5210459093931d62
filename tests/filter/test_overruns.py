"""Completions that exhaust their scorer count as wrong; a scorer that fails controls too is at fault itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from strop.filter.overruns import Overruns
from strop.filter.rewards.math_verify import MathVerify
from strop.filter.scoring import Scorer
from strop.observe.health.throughput import ExhaustedScorer
from strop.observe.run_files.run_history import History
from strop.roles import Reward
from strop.storage.ledger.fates_by_kind import KindFates
from strop.storage.llm_answers import AnswerCache
from strop.types import Group, Message, Outcome, Task
from tests.filter.test_scoring import group_of, outcomes, scored


def _deep(depth: int) -> int:
    return _deep(depth + 1) + 1


_TROUBLE: dict[str, Callable[[], Any]] = {
    "hang": lambda: time.sleep(300),
    "memory": lambda: bytearray(1 << 50),
    "stack": lambda: _deep(0),
    "bug": lambda: 1 // 0,
}


@dataclass(frozen=True)
class Grades(Reward):
    """A scale from -1 to 1: `right` earns 1, whatever else -1; some words make trouble."""

    low: float = -1.0
    high: float = 1.0
    weight: float = 1.0

    def __call__(self, group: Group) -> list[float]:
        for rollout in group.rollouts:
            if rollout.completion in _TROUBLE:
                _TROUBLE[rollout.completion]()
        return [self.high if rollout.completion == "right" else self.low for rollout in group.rollouts]


@dataclass(frozen=True)
class HangsOnAll(Reward):
    """Broken: answers nothing but, where it is told so, the empty completion."""

    weight: float = 1.0
    knows_empty: bool = False

    def __call__(self, group: Group) -> list[float]:
        for rollout in group.rollouts:
            if rollout.completion or not self.knows_empty:
                time.sleep(300)
        return [0.0] * len(group.rollouts)


@dataclass(frozen=True)
class Starves(Reward):
    """Works until `score` exists, then hangs whatever it is asked: a scorer that broke in the middle of a run."""

    score: str
    weight: float = 1.0

    def __call__(self, group: Group) -> list[float]:
        if Path(self.score).exists():
            time.sleep(300)
        return [1.0] * len(group.rollouts)


@dataclass(frozen=True)
class OnceSlow(Reward):
    """Hangs the first time that it is asked, as on a machine that was busy."""

    score: str
    weight: float = 1.0

    def __call__(self, group: Group) -> list[float]:
        if not Path(self.score).exists():
            Path(self.score).touch()
            time.sleep(300)
        return [1.0 if rollout.completion == "right" else 0.0 for rollout in group.rollouts]


@pytest.mark.parametrize("said", ["hang", "memory", "stack"])
@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (1.0, 10.0), (0.0, 1.0)])
def test_what_exhausts_its_scorer_earns_what_a_wrong_answer_does(said: str, low: float, high: float) -> None:
    group = group_of("right", said, "wrong")
    (scores,) = scored([Grades(low, high)], group, seconds=1.0)
    assert outcomes(group) == [high, low, low] and scores.overruns == 1 and scores.failed == 0
    assert group.rollouts[1].error.endswith("counts as wrong")


def test_it_earns_that_beside_right_siblings_alone_and_without_any() -> None:
    beside, alone = group_of("right", "hang"), group_of("hang")
    scored([Grades()], beside, alone, seconds=1.0)
    assert outcomes(beside) == [1.0, -1.0] and outcomes(alone) == [-1.0]


@dataclass(frozen=True)
class GradesHere(Grades):
    """In the run's own process."""

    is_inline: ClassVar[bool] = True


@dataclass(frozen=True)
class Ranks(Grades):
    """How many siblings are no better."""

    is_relative: ClassVar[bool] = True
    hangs_on_all: bool = False

    def __call__(self, group: Group) -> list[float]:
        if self.hangs_on_all:
            time.sleep(300)
        grades = super().__call__(group)
        return [float(sum(grade >= other for other in grades)) for grade in grades]


@pytest.mark.parametrize("said", ["memory", "stack"])
def test_what_exhausts_a_reward_of_this_process_counts_as_wrong(said: str) -> None:
    group = group_of("right", said, "wrong")
    (scores,) = scored([GradesHere()], group, seconds=5.0)
    assert outcomes(group) == [1.0, -1.0, -1.0] and (scores.overruns, scores.failed) == (1, 0)


@pytest.mark.parametrize("said", ["hang", "memory"])
def test_what_exhausts_a_comparison_of_siblings_counts_as_the_worst(said: str) -> None:
    """It is left out of the comparison, and takes nobody with it."""
    group = group_of("right", said, "wrong", "right")
    (scores,) = scored([Ranks()], group, seconds=2.0)
    assert outcomes(group) == [4.0, 2.0, 2.0, 4.0] and (scores.overruns, scores.failed) == (1, 0)
    assert group.rollouts[1].error.endswith("counts as wrong")


def test_a_comparison_that_hangs_on_all_punishes_nobody() -> None:
    group = group_of("right", "hang")
    (scores,) = scored([Ranks(hangs_on_all=True)], group, seconds=1.0)
    assert [rollout.outcome for rollout in group.rollouts] == [Outcome.FAILED] * 2 and scores.overruns == 0


def test_a_bug_that_a_completion_finds_stays_the_scorers_fault() -> None:
    group = group_of("right", "bug")
    (scores,) = scored([Grades()], group, seconds=1.0)
    at = "(test_overruns.py, line 34)"
    assert outcomes(group) == [1.0, f"reward grades: ZeroDivisionError: integer division or modulo by zero {at}"]
    assert scores.overruns == 0 and scores.failed == 1


@pytest.mark.parametrize("knows_empty", [False, True])
def test_a_scorer_that_hangs_on_all_punishes_nobody(knows_empty: bool) -> None:
    group = group_of("1", "2")
    (scores,) = scored([HangsOnAll(knows_empty=knows_empty)], group, seconds=0.5)
    assert [rollout.outcome for rollout in group.rollouts] == [Outcome.FAILED] * 2 and scores.overruns == 0
    assert all("a control completion fails as well" in rollout.error for rollout in group.rollouts)


def test_a_scorer_that_breaks_in_the_middle_of_a_run_punishes_nobody(tmp_path: Path) -> None:
    flag = tmp_path / "broken"

    async def score() -> list[Group]:
        scorer, groups = Scorer([Starves(str(flag))], seconds=0.5), [group_of("1"), group_of("1")]
        for group in groups:
            await scorer(group)
            flag.touch()
        await scorer.close()
        return groups

    before, after = asyncio.run(score())
    assert outcomes(before) == [1.0] and after.rollouts[0].outcome is Outcome.FAILED


def test_a_pause_of_the_machine_costs_nobody_its_reward(tmp_path: Path) -> None:
    group = group_of("right")
    (scores,) = scored([OnceSlow(str(tmp_path / "seen"))], group, seconds=1.0)
    assert outcomes(group) == [1.0] and scores.overruns == 0


def test_a_resumed_run_is_told_the_same_without_asking_again(tmp_path: Path) -> None:
    def told() -> tuple[Group, float]:
        group, begun = group_of("hang"), time.monotonic()

        async def score() -> None:
            scorer = Scorer([Grades()], seconds=1.0)
            scorer.overruns = Overruns(AnswerCache(tmp_path / "overruns.db"))
            await scorer(group)
            await scorer.close()

        asyncio.run(score())
        return group, time.monotonic() - begun

    (first, slow), (again, quick) = told(), told()
    assert outcomes(first) == outcomes(again) == [-1.0] and first.rollouts[0].error == again.rollouts[0].error
    assert quick < 0.5 < slow


HOSTILE = ["$9^{9^{9^9}}$", "$(10^9)!$", "$" + "9^" * 40 + "9$"]


def math_scores(answer: str, completions: Sequence[str]) -> Group:
    group = group_of(*completions)
    group.task = Task((Message("user", "?"),), answer, "test")
    for rollout in group.rollouts:
        rollout.task = group.task
    scored([MathVerify()], group, seconds=3.0)
    return group


def test_towers_of_powers_count_as_wrong_in_math_verify() -> None:
    group = math_scores("12", ["$12$", *HOSTILE])
    assert outcomes(group) == [1.0] + [0.0] * len(HOSTILE)


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        ("12", ["$12$", "$12\\%$"], ["$1200\\%$", "$x=1200\\%$", "$0.12$", "1200%", "1200 percent"]),
        ("12\\%", ["$12\\%$", "$0.12$"], ["$1200\\%$", "$1200$"]),
        ("0.12", ["$0.12$", "$12\\%$"], ["$1200\\%$", "$12$"]),
        ("\\frac{1}{2}", ["$50\\%$", "$0.5$"], ["$50$", "$5000\\%$"]),
    ],
)
def test_a_percent_sign_has_one_meaning(answer: str, right: list[str], wrong: list[str]) -> None:
    group = math_scores(answer, [*right, *wrong])
    assert outcomes(group) == [1.0] * len(right) + [0.0] * len(wrong)


def test_doctor_says_when_many_completions_exhaust_their_scorer() -> None:
    def found(overruns: int) -> Any:
        kind = KindFates("sums", 2, 100, 50.0, 0, 0.0, 0, overruns=overruns, overrun="reward x: no answer within 10 s")
        return ExhaustedScorer().judge(History([], kinds=[kind]))

    assert found(4) is None
    assert "20 of 100 completions" in found(20).evidence and "no answer within 10 s" in found(20).evidence
