"""Critique-Coder's tasks (2509.22824): programs that the policy wrote, to be judged by it; tests said which are right.

Papers: critique-coder
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from strop.environments.bundled.critiques import Critiques, concluded, shown
from strop.environments.bundled.programs import Programs
from strop.environments.code_execution import program_in
from strop.environments.data.heldout_split import prompt_of
from strop.roles import Writer
from strop.stats.task_lineage import child
from strop.success import is_right
from strop.text.sanitize import quoted
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player
    from strop.run import Run


@dataclass(frozen=True)
class Critiqued(Writer):
    """Of each group of programs the first that passes all tests and the first that does not; no program is no task."""

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if group.task.source != Programs.name:
            return []
        found: dict[bool, Task] = {}
        for attempt in group.own:
            program = quoted(program_in(attempt.reply).text).strip("\n")
            truth = is_right(sum(attempt.turn_rewards))
            if program.strip():
                found.setdefault(truth, critique(group.task, program, truth))
        return list(found.values())

    def problems(self, run: Run) -> list[str]:
        levels = {name: {world.level for world in run.worlds if world.name == name} for name in _NAMES}
        missing = sorted(levels[Programs.name] - levels[Critiques.name])
        return [f"critiques:{level} is no world of this run: add it to world" for level in missing]


_NAMES = (Programs.name, Critiques.name)


def critique(task: Task, program: str, is_true: bool) -> Task:
    """Is this program for that task right?"""
    parent = replace(task, source=Critiques.name)
    return child(parent, shown(prompt_of(task), program), concluded(is_true))
