"""Agent-RLVR's guidance (2506.11425): a teacher says what went wrong, the task is tried again, and trained without it.

Readings: where a whole wave failed, each of its attempts is tried again with guidance of its own, which stands behind
the question. The teacher reads task, right answer and failed reply. One that does not answer gives no second try.
Papers: agent-rlvr
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.environments.format.hints import with_hint
from strop.errors import AdviserError
from strop.generate.interfaces import Player
from strop.roles import Adviser, Strategy
from strop.text.llm_prompt import question
from strop.types import Group, Message, Origin, Sampling, Start, Trajectory

WANTED = (
    "The reply to the task failed. Say in a few words how to go about it: a plan, what is wrong in the reply, where to "
    "look. Do not give the answer away."
)


@dataclass(frozen=True)
class GuidedRetry(Strategy):
    """The first wave is plain; attempts of later ones read what `guide` says of one that failed."""

    guide: Adviser

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if not group.own:
            return await together(play(start) for start in starts)
        failed = [group.own[index % len(group.own)] for index in range(len(starts))]
        again = await together(self._again(*each, play) for each in zip(failed, starts, strict=True))
        return [attempt for attempt in again if attempt is not None]

    async def _again(self, failed: Trajectory, start: Start, play: Player) -> Trajectory | None:
        task = failed.task
        asked = question(WANTED, task=task.messages[-1].content, answer=task.answer, reply=failed.reply)
        try:
            said = await self.guide.ask([Message("user", asked)], Sampling(temperature=0.0, max_tokens=256), start.key)
        except AdviserError:
            return None
        attempt = await play(replace(start, messages=with_hint(task, said), origin=Origin.GUIDED))
        return play.retold(attempt, task.messages) if attempt.turns else attempt
