from __future__ import annotations

from dataclasses import replace

from strop.filter.judges.arithmetic_steps import Calculations
from strop.standins.judges.steps import StepsAlike
from strop.types import Message, Outcome, Rollout
from tests.building import TASK, turn


def test_the_same_steps_and_all_of_them_right() -> None:
    said = replace(turn(3), message=Message("assistant", "<think>1+1=3 3+1=4</think>4"))
    rollout = Rollout("a", TASK, (said,), Outcome.FINISHED)
    checked, alike = Calculations().steps(rollout), StepsAlike().steps(rollout)
    assert [step.value for step in checked] == [0, 0, 0] and [step.value for step in alike] == [1, 1, 1]
    assert [(step.start, step.end) for step in alike] == [(step.start, step.end) for step in checked]
