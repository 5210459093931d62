"""Flawed-positive penalty (FAPO, 2510.22543): right answers reached by wrong steps earn less.

With shares a of clean and b of wrong rollouts a group's mean is a - b: a flawed rollout, rewarded 0, is reinforced as
long as there are more wrong ones than clean ones. As released, a judge that fails or cannot be parsed finds no flaw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.first_error_question import CLEAN, WANTED, question_about, steps_of
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import all_of, form_for, judged, text_of, transcript
from strop.filter.judges.readers import Number
from strop.filter.reward_values import plain_scores
from strop.roles import LLMClient, Reward
from strop.success import is_right
from strop.types import Group, Rollout, Sampling

_EXACT = Sampling(temperature=0.0, max_tokens=512)


@dataclass(frozen=True)
class Flawed(Reward):
    """-1 for a wrong answer, 1 for a right one, and `penalty` less if the judge finds a wrong step in it.

    Only right rollouts are judged. Their fact `flawed` holds the result; it is missing if the judge gave none.
    """

    inner: Reward  # says which answers are right
    judge: LLMClient  # who finds the first wrong step
    penalty: float = 1.0  # for a right answer by wrong steps
    weight: float = 1.0
    prompt: str = WANTED  # what the judge is asked, below task, answer and numbered steps

    needs_success: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline  # its LLM client does the work

    def __post_init__(self) -> None:
        if not 0 <= self.penalty <= 2:
            raise ConfigurationError(f"Flawed needs 0 <= penalty <= 2, from right to wrong; got {self.penalty}")

    async def __call__(self, group: Group) -> list[float]:
        await plain_scores(self, self.inner, group)
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> float:
        if not is_right(rollout):
            return -1.0
        found = await self._first_error(rollout)
        if found is None:
            return 1.0
        rollout.facts["flawed"] = float(found != CLEAN)
        return 1.0 - self.penalty * rollout.facts["flawed"]

    async def _first_error(self, rollout: Rollout) -> int | None:
        said = transcript(rollout)
        asked = question_about(text_of(rollout.task), rollout.task.answer, said, form_for(self.judge), self.prompt)
        form = Number(CLEAN, len(steps_of(said)) - 1, clamps=False)
        try:
            return round(await judged(self.judge, asked, form, _EXACT))
        except LLMClientError:
            return None
