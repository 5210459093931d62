"""CoMAS's pay (2510.08529): a solution and the evaluation that looks for its flaws share one point between them.

A scorer reads both and says 3 where the solution is right and the evaluation useless, 2 in between, 1 where a fatal
error was found. Where its word cannot be read neither of them is a sample: nothing is paid, and nothing marked.

Papers: comas
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.filter.judges.batch_ask import ANYTHING, all_of, text_of, verdict
from strop.filter.paid_text import Paid, Span
from strop.roles import Adviser, Reward
from strop.text.llm_prompt import judgement
from strop.types import Group, Sampling, Trajectory, Turn

NAME = "scored"  # tokens of turns that were
_ASKED = (
    "The reply answers the task, and the other text looks for its flaws. Answer with 3 if the reply is right and the "
    "other finds nothing, 2 if there is something in both, 1 if the other finds a fatal error."
)
_SAMPLING = Sampling(temperature=0.0, max_tokens=8)  # of the scorer
_SCORE = re.compile(r"\s*(?:score:?\s*)?([1-3])\s*[.]?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Interactions(Reward):
    """(score - 1) / 2 at the end of a solution, (3 - score) / 2 at the end of its evaluation; turns alternate."""

    scorer: Adviser
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits for its scorer, who has a deadline

    def __call__(self, group: Group) -> Awaitable[Sequence[Paid]]:
        return all_of(self._paid(attempt) for attempt in group.trajectories)

    async def _paid(self, attempt: Trajectory) -> Paid:
        rounds = list(zip(attempt.turns[0::2], attempt.turns[1::2], strict=False))
        scores = await all_of(self._score(attempt, solution, evaluation) for solution, evaluation in rounds)
        found = [(number, score) for number, score in enumerate(scores) if score is not None]
        paid = [(2 * number, (score - 1) / 2) for number, score in found]
        paid += [(2 * number + 1, (3 - score) / 2) for number, score in found]
        return Paid(0.0, tuple(_span(attempt.turns[turn], turn, value) for turn, value in sorted(paid)))

    async def _score(self, attempt: Trajectory, solution: Turn, evaluation: Turn) -> int | None:
        parts = {"reply": solution.message.content, "other": evaluation.message.content}
        asked = judgement(_ASKED, task=text_of(attempt.task), **parts)
        return score_in(await verdict(self.scorer, asked, ANYTHING, _SAMPLING))


def score_in(text: str) -> int | None:
    """1, 2 or 3 and nothing else; None: it cannot be read."""
    found = _SCORE.fullmatch(text)
    return int(found.group(1)) if found else None


def _span(turn: Turn, number: int, value: float) -> Span:
    return Span(number, 0, len(turn.message.content), value, name=NAME)
