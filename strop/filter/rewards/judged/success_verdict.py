"""OpenWebVoyager's judge (2410.19609): it reads the task, the last pages seen and the answer, and says SUCCESS or not.

Reading: an answer with neither word is no verdict, and the attempt then is no evidence, where the release counts 0; one
that says "not a success" is a failure, where the release finds the word alone.
Papers: openwebvoyager
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.bundled.pages import answered
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of, text_of, verdict
from strop.roles import Adviser, Reward
from strop.text.llm_prompt import judgement
from strop.types import Group, Trajectory

ASKED = (
    "Was the task done? The pages that were seen last stand under other, the answer that was given under reply. "
    "End with SUCCESS or NOT SUCCESS."
)
_FAILURE = re.compile(r"\b(?:NOT|NO)\b[^.\n]{0,40}\bSUCCESS|\bUNSUCCESS")
_SUCCESS = re.compile(r"\bSUCCESS")
_BARE = re.compile(r"\W{0,9}(?:NOT )?SUCCESS\W{0,9}")


def verdict_in(text: str) -> float:
    """1 or 0; NaN: it does not say."""
    if _FAILURE.search(text):
        return 0.0
    return 1.0 if _SUCCESS.search(text) else math.nan


@dataclass(frozen=True)
class SuccessVerdict(Reward):
    """What the judge says; an attempt that does not end with an answer is 0, and nobody is asked."""

    judge: Adviser
    pages: int = 3  # that the judge is shown, the last ones
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its adviser does the work
    name: ClassVar[str] = "success_verdict"

    def __post_init__(self) -> None:
        if self.pages < 1:
            raise ConfigurationError(f"SuccessVerdict needs pages >= 1, got {self.pages}")

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._mark(attempt) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory) -> float:
        said = answered(attempt.reply)
        if not said:
            return 0.0
        seen = [message.content for turn in attempt.turns for message in turn.told][-self.pages :]
        asked = judgement(ASKED, task=text_of(attempt.task), other="\n".join(seen), reply=said)
        return verdict_in(await verdict(self.judge, asked, _BARE))
