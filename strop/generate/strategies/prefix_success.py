"""ER-PRM's labels (2412.11006): how good each beginning of a solution is, by what the first policy makes of it.

Papers: er-prm
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from strop.concurrency import together
from strop.environments.judging.verdict import BAD, GOOD
from strop.errors import ConfigurationError
from strop.filter.judges.arithmetic_steps import Calculations, StepJudge
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.policy_names import REFERENCE
from strop.generate.strategies.support.forced_reply import Saying
from strop.generate.verdict_tokens import as_verdict, has_verdict, word_ids
from strop.roles import Strategy
from strop.types import Group, IntArray, Origin, Outcome, Start, Trajectory


@dataclass
class PrefixSuccess(Strategy):
    """Verdicts on the beginnings of solutions, each paid its label; solutions and completions themselves are given up.

    A solution of the first policy is cut behind each of its steps. From there it is finished `samples` times, and the
    label is (1 / eta) log(mean of exp(eta * reward)); that of the whole solution is its own reward. Needs the engine
    `WithReference`, for the model that learns is not the one that solves. `steps` finds where steps end, nothing else.
    """

    samples: int = 8  # completions of each beginning
    eta: float = 1.0  # 0: the mean; above: nearer to the best; below: nearer to the worst
    steps: StepJudge = field(default_factory=Calculations)

    _ids: IntArray | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigurationError(f"PrefixSuccess needs samples >= 1, got {self.samples}")

    def meet(self, policy: Policy) -> None:
        self._ids = word_ids(policy.template)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        tried = await together(play(replace(start, voice=REFERENCE, origin=Origin.TEACHER)) for start in starts)
        earned = await play.score(tried)
        both = zip(tried, earned, strict=True)
        solutions = [(whole, mark) for whole, mark in both if mark is not None and _is_whole(whole)]
        # behind the last step there is nothing to finish
        begun = [(whole, whole.reply[: step.end]) for whole, _ in solutions for step in self.steps.steps(whole)[:-1]]
        labels = await self._labels([text for _, text in begun], play)
        labelled = [(*each, label) for each, label in zip(begun, labels, strict=True)]
        labelled += [(whole, whole.reply, mark) for whole, mark in solutions]
        said = [await self._said(*each, play) for each in labelled if not math.isnan(each[2])]
        # a verdict that has no room in the context is none
        return [as_verdict(attempt, self._ids) for attempt in said if has_verdict(attempt)]

    async def _labels(self, begun: Sequence[str], play: Player) -> list[float]:
        """Of beginnings; completions that the world failed do not count, and without any there is none (NaN)."""
        asked = [text for text in begun for _ in range(self.samples)]
        more = [play.another(begins=text, voice=REFERENCE, origin=Origin.TEACHER) for text in asked]
        marks = await play.score(await together(play(start) for start in more))
        parts = [marks[first : first + self.samples] for first in range(0, len(marks), self.samples)]
        return [entropic_mean([mark for mark in part if mark is not None], self.eta) for part in parts]

    async def _said(self, whole: Trajectory, text: str, label: float, play: Player) -> Trajectory:
        return await play(play.another(parent=whole.id), Saying(GOOD if label >= 0.5 else BAD, label, text))


def _is_whole(attempt: Trajectory) -> bool:
    return attempt.outcome is Outcome.FINISHED and len(attempt.turns) == 1


def entropic_mean(values: Sequence[float], eta: float) -> float:
    """(1 / eta) log(mean of exp(eta * value)), between the mean and the largest for eta > 0; NaN of none."""
    if not values:
        return math.nan
    if eta == 0:
        return sum(values) / len(values)
    most = max(eta * value for value in values)
    return (most + math.log(sum(math.exp(eta * value - most) for value in values) / len(values))) / eta
