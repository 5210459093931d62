"""Process rewards that repetition cannot raise (Gao et al., 2410.15115): clipped from above, then paid as differences.

Papers: clip-delta
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.errors import ConfigurationError, nearest
from strop.filter.judges.arithmetic_steps import Calculations, StepJudge
from strop.filter.paid_text import Paid, Span
from strop.roles import Reward
from strop.types import Group

FORMS = ("clip-delta", "clip", "delta", "raw")


@dataclass(frozen=True)
class ClipDelta(Reward):
    """Pays step k of K at its last token, p being what the judge says of the steps.

    clip: min(p_k - eta, 0), eta the mean of p over all steps of the group. delta: p_k - p_(k+1), for the last step but
    one p_k, for the last nothing: what is paid from step k on is then p_k, and the last step is the task reward's.
    clip-delta: the differences of what was clipped. raw: p_k, which attempts that repeat right steps exploit.
    """

    judge: StepJudge = field(default_factory=Calculations)  # who says how right each step is
    form: str = "clip-delta"  # clip-delta, clip, delta or raw
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where its judge is
    is_relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigurationError(f"process rewards have no form {self.form!r}: {nearest(self.form, FORMS)}")

    def __call__(self, group: Group) -> list[Paid]:
        found = [self.judge.steps(attempt) for attempt in group.trajectories]
        values = [step.value for steps in found for step in steps]
        eta = sum(values) / max(len(values), 1)
        return [self._paid(steps, eta) for steps in found]

    def _paid(self, steps: Sequence[Span], eta: float) -> Paid:
        due = [step.value for step in steps]
        if "clip" in self.form:
            due = [min(value - eta, 0.0) for value in due]
        if "delta" in self.form:
            due = differences(due)
        return Paid(0.0, tuple(replace(step, value=value) for step, value in zip(steps, due, strict=True)))


def differences(values: Sequence[float]) -> list[float]:
    """Each value minus the next one; the last value counts as if there were none."""
    judged = [*values[:-1], 0.0]
    return [value - after for value, after in zip(judged, [*judged[1:], 0.0], strict=True)][: len(values)]
