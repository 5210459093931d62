"""A judge of steps to whom all of them are equally right: what process rewards pay for steps as such, for controls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from strop.filter.judges.arithmetic_steps import Calculations, StepJudge
from strop.filter.paid_text import Span
from strop.types import Rollout


@dataclass(frozen=True)
class StepsAlike(StepJudge):
    """The steps that `inner` finds, each called right."""

    inner: StepJudge = field(default_factory=Calculations)

    def steps(self, rollout: Rollout) -> list[Span]:
        return [replace(step, value=1.0) for step in self.inner.steps(rollout)]
