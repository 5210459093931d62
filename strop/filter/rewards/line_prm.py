"""Line-level process rewards for programs (2410.17621, 2502.01715).

Readings: each reward is divided by the number of lines, so that more lines earn no more; blank lines and comments earn
nothing.

Papers: prm-code, prlcoder
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.filter.judges.arithmetic_steps import StepJudge
from strop.filter.paid_text import Paid
from strop.roles import Reward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class JudgedLines(Reward):
    """Score of each line, clipped to [-1, 1], divided by the number of lines, at the line's last token."""

    judge: StepJudge  # who scores lines
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where its judge is

    def __call__(self, group: Group) -> list[Paid]:
        return [self._paid(rollout) for rollout in group.rollouts]

    def _paid(self, rollout: Rollout) -> Paid:
        steps = self.judge.steps(rollout)
        held = [min(max(step.value, -1.0), 1.0) / len(steps) for step in steps]
        return Paid(0.0, tuple(replace(step, value=value) for step, value in zip(steps, held, strict=True)))
