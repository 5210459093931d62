"""Expert-guided self-reformulation (ADCL-EGSR, 2505.08364): where a whole wave failed, the policy rewrites a solution.

Reading: after a wave without success the next one reads the expert's solution, or its answer alone; what is right of it
joins the same group as if nothing had been shown, and what is wrong is thrown away. Trained tokens keep the logprobs
with which they were sampled, behind the solution, so that their ratio begins below 1. The expert is the world itself.
Papers: adcl-egsr
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strop.concurrency import together
from strop.environments.format.hints import hinted, without_hints
from strop.generate.interfaces import Player
from strop.roles import Strategy, World
from strop.success import is_right
from strop.types import Group, Message, Origin, Start, Task, Trajectory

if TYPE_CHECKING:
    from strop.run import Run

_ALL = 1000  # steps: more than any working has


@dataclass(frozen=True)
class Reformulated(Strategy):
    """The first wave is plain; of every later one, which reads a solution, the right attempts are brought."""

    worlds: tuple[World, ...]
    answer_alone: bool = False  # whether the answer is shown, and not the working
    right: float = 1.0  # reward of a right attempt

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        if not group.trajectories:
            return await together(play(start) for start in starts)
        shown = self._shown(group.task)
        made = await together(play(replace(start, messages=shown, origin=Origin.GUIDED)) for start in starts)
        scores = await play.score(made)
        accepted = [a for a, score in zip(made, scores, strict=True) if score and is_right(score, self.right)]
        return [play.retold(attempt, attempt.task.messages) for attempt in accepted]

    def problems(self, run: Run) -> list[str]:
        return [] if self.answer_alone else without_hints(self.worlds)

    def _shown(self, task: Task) -> tuple[Message, ...]:
        if not self.answer_alone:
            return hinted(self.worlds, task, _ALL)
        *before, last = task.messages
        return (*before, replace(last, content=f"{last.content} hint: {task.answer}"))
