"""TRM's reward for a policy (2509.25409): a judge that thinks about each sentence says whether it is right.

Each sentence is paid at its own end, so that credit can stay with it.
Papers: trm
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import AdviserError
from strop.filter.judges.batch_ask import all_of, text_of, verdict
from strop.filter.paid_text import Paid, Span
from strop.filter.sentences import ASKED, VERDICTS, SentenceVerdict, numbered, sentences, verdicts_in
from strop.filter.span_rewards import ENDS
from strop.roles import Adviser, Reward
from strop.text.llm_prompt import judgement
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class SentenceVerdicts(Reward):
    """1 at the end of each sentence of the last reply that is judged correct, divided by how many there are.

    A reply without any sentence earns 0; an answer that leaves one out is none.
    """

    judge: Adviser
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its judge does the work

    async def __call__(self, group: Group) -> list[Paid]:
        return await all_of(self._mark(attempt) for attempt in group.trajectories)

    async def _mark(self, attempt: Trajectory) -> Paid:
        places = sentences(attempt.reply)
        verdicts = await self._verdicts(attempt, len(places)) if places else []
        turn, count = len(attempt.turns) - 1, max(len(places), 1)
        attempt.facts["faithful"] = sum(each.is_faithful for each in verdicts) / count
        spans = [
            span
            for (start, end), verdict in zip(places, verdicts, strict=True)
            for span in (Span(turn, start, end, verdict.is_correct / count), Span(turn, end - 1, end, name=ENDS))
        ]
        return Paid(0.0, tuple(spans))

    async def _verdicts(self, attempt: Trajectory, count: int) -> list[SentenceVerdict]:
        asked = judgement(ASKED, task=text_of(attempt.task), reply=numbered(attempt.reply))
        said = await verdict(self.judge, asked, VERDICTS)
        found = verdicts_in(said)
        if sorted(found) != list(range(1, count + 1)):
            raise AdviserError(f"need one verdict on each of {count} sentences, got {said[:80]!r}")
        return [found[number] for number in range(1, count + 1)]
