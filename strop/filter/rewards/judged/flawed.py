"""Right answers by wrong steps are worth less (FAPO, 2510.22543): helpful while most attempts fail, and later not.

With shares a of clean and b of wrong attempts a group's mean is a - b: a flawed attempt, paid 0, is pushed up as long
as there are more wrong ones than clean ones. As released, a judge that fails or says nothing readable finds no flaw.

Papers: fapo
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from strop.environments.judging.first_error_question import CLEAN, located, question_about, steps_of
from strop.errors import AdviserError, ConfigurationError
from strop.filter.judges.batch_ask import all_of, form_for, text_of, verdict
from strop.filter.reward_values import plain_marks
from strop.roles import Adviser, Reward
from strop.success import is_right
from strop.types import Group, Sampling, Trajectory

_EXACT = Sampling(temperature=0.0, max_tokens=512)
_BARE = re.compile(r"(?:.*</think>)?\s*-?[0-9]{1,6}\s*", re.DOTALL)


@dataclass(frozen=True)
class Flawed(Reward):
    """-1 for a wrong answer, 1 for a right one, and `penalty` less where the judge finds a wrong step in its working.

    Only right attempts are judged. The fact `flawed` of those says what the judge found; without it, it said nothing.
    """

    inner: Reward  # an answer that it gives 1 is right
    judge: Adviser  # who finds the first wrong step
    penalty: float = 1.0  # for a right answer by wrong steps
    weight: float = 1.0

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline  # its adviser does the work

    def __post_init__(self) -> None:
        if not 0 <= self.penalty <= 2:
            raise ConfigurationError(f"Flawed needs 0 <= penalty <= 2, from right to wrong; got {self.penalty}")

    async def __call__(self, group: Group) -> list[float]:
        marks = plain_marks(self, self.inner, group)
        return await all_of(self._mark(*each) for each in zip(group.trajectories, marks, strict=True))

    async def _mark(self, attempt: Trajectory, mark: float) -> float:
        if not is_right(mark):
            return -1.0
        found = await self._first_error(attempt)
        if found is None:
            return 1.0
        attempt.facts["flawed"] = float(found != CLEAN)
        return 1.0 - self.penalty * attempt.facts["flawed"]

    async def _first_error(self, attempt: Trajectory) -> int | None:
        asked = question_about(text_of(attempt.task), attempt.task.answer, attempt.reply, form_for(self.judge))
        try:
            said = await verdict(self.judge, asked, _BARE, _EXACT)
        except AdviserError:
            return None
        return located(said, len(steps_of(attempt.reply)))
