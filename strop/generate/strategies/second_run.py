"""Self-abstraction from grounded experience (2511.05931): run once, say a plan, run again with it, and hand that in.

The second run begins in a world of its own, as the first did, and nothing is scored in between. Readings: the plan is
shorter than what it was taken from, and lines of it that say what the first run answered are left out; where nothing is
left, the first run is handed in.
Papers: sage-abstraction
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strop.concurrency import together
from strop.control.task_generators.support.validation import holds
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting, with_help
from strop.generate.memory.reflect import reflected, trace
from strop.generate.memory.store import lines
from strop.roles import Adviser, Strategy
from strop.types import Group, Start, Trajectory

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


@dataclass(frozen=True)
class SecondRun(Strategy):
    """Each start is the second run; the first is made for it and thrown away."""

    adviser: Adviser | None = None  # who says the plan; None: the policy itself
    steps: int = 8  # lines of a plan
    longest: int = 200  # characters of a plan

    def __post_init__(self) -> None:
        if self.steps < 1 or self.longest < 1:
            raise ConfigurationError(f"SecondRun needs steps >= 1 and longest >= 1, got {self.steps}, {self.longest}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        return await together(self._again(group, start, play.apart(start)) for start in starts)

    async def _again(self, group: Group, start: Start, play: Player) -> Trajectory:
        first = await play(play.another())
        plan = await self._plan(first, play)
        handed_in = await play(with_help(start, group.task, plan)) if plan else first
        share = sum(map(len, plan)) / max(len(trace(first)), 1)
        return replace(handed_in, facts=handed_in.facts | {"plan_steps": float(len(plan)), "plan_share": share})

    async def _plan(self, first: Trajectory, play: Player) -> list[str]:
        told = trace(first)
        said = await reflected(self.adviser, "plan", play, task=prompt_of(first.task), reply=told)
        answer = final_answer(first.reply)
        steps = [step for step in lines(said, self.steps) if not holds(step, answer)]
        return fitting(steps, min(self.longest, len(told) - 1))
