"""Equal mathematics is right however it is written; what cannot be compared in time fails."""

from __future__ import annotations

import asyncio

import pytest

from strop.filter.rewards.math_verify import MathVerify
from strop.filter.scoring import Scorer
from strop.types import Outcome, Task
from tests.filter.test_scoring import group_of


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        ("1/2", ["0.5", "$\\frac{1}{2}$", "so it is \\boxed{\\frac{2}{4}}"], ["2", "", "half", "$\\frac{"]),
        ("72", ["72", "The answer is $72$.", "\\boxed{72.0}"], ["73", "7 2 apples"]),
        ("\\sqrt{8}", ["$2\\sqrt{2}$"], ["$2\\sqrt{3}$"]),
        ("x^2+2x+1", ["$(x+1)^2$"], ["$(x+2)^2$"]),
    ],
)
def test_equal_mathematics(answer: str, right: list[str], wrong: list[str]) -> None:
    group = group_of(*right, *wrong)
    group.task = Task(group.task.messages, answer, "test")
    assert MathVerify()(group) == [1.0] * len(right) + [0.0] * len(wrong)


def test_an_answer_that_is_no_mathematics_is_no_zero() -> None:
    group = group_of("1")
    group.task = Task(group.task.messages, "", "test")
    with pytest.raises(ValueError, match="is no mathematics"):
        MathVerify()(group)


def test_it_runs_in_the_worker_and_an_endless_comparison_is_ended() -> None:
    group = group_of("2", "$9^{9^{9^{9}}}$", "3")

    async def score() -> None:
        scorer = Scorer([MathVerify()], seconds=3.0)
        await scorer(group)
        await scorer.close()

    asyncio.run(score())
    right, endless, wrong = group.rollouts
    assert (right.reward, right.outcome) == (1.0, Outcome.FINISHED)
    assert (endless.reward, endless.outcome) == (0.0, Outcome.FINISHED)
    assert endless.error.startswith("reward math_verify: no answer within 3 s, twice")
    assert (wrong.reward, wrong.outcome) == (0.0, Outcome.FINISHED)
