"""Checks of the tasks of tables: prompts that leave no room for a completion, and rows that another table measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from strop.capabilities import inside
from strop.environments.data.heldout_split import HeldOutSide
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.generate.templates.chat_template import Template
from strop.run import Run
from strop.types import Message, Task

_MARKERS = 64  # tokens that a template puts around one message, at most: then short texts need not be tokenized


@dataclass(frozen=True)
class LeftOut:
    """Tasks that a table leaves out because of their length."""

    path: str
    ids: frozenset[str]
    tasks: int  # in all
    longest: int  # tokens of the longest prompt
    context: int

    def __str__(self) -> str:
        return (
            f"{len(self.ids)} of {self.tasks} prompts of {self.path} leave no room for a completion in context="
            f"{self.context} (the longest has {self.longest} tokens)"
        )


@dataclass(frozen=True)
class MeasuredElsewhere:
    """Train rows of a table that are held-out rows of another one."""

    path: str
    ids: frozenset[str]
    tasks: int  # to train on

    def __str__(self) -> str:
        return f"{len(self.ids)} of {self.tasks} train rows of {self.path} are held-out rows of another table"


NotServed: TypeAlias = LeftOut | MeasuredElsewhere


def leave_out_measured(run: Run) -> list[MeasuredElsewhere]:
    """Tables of which one trains on what another one measures; one that has nothing left is refused."""
    tables, found = inside(run, Table), dict[str, MeasuredElsewhere]()
    heldout = HeldOutSide(list(dict.fromkeys(tables)))
    if len(heldout.envs) < 2:
        return []
    for table in tables:
        rows = [table.task(index) for index in range(table.num_tasks())]
        ids = frozenset(task.id for task in rows if heldout.has(task))
        if ids:
            table.leave_out(ids)
            found[table.path] = MeasuredElsewhere(table.path, ids, len(rows))
        if rows and not table.num_tasks():
            raise ConfigurationError(f"{found[table.path]}: measure on other rows than those that the run trains on")
    return list(found.values())


def leave_out_long(run: Run, template: Template) -> list[LeftOut]:
    """Tables serve the tasks that fit; one of which most do not fit, or that has no side left, is refused."""
    found: dict[Table, LeftOut] = {}
    for table in inside(run, Table):
        if table not in found:
            found[table] = _long(table, run.context, template)
        sides = [side for side in (False, True) if table.num_tasks(side)]
        table.leave_out(found[table].ids)
        if 2 * len(found[table].ids) > found[table].tasks or not all(map(table.num_tasks, sides)):
            raise ConfigurationError(f"{found[table]}: set context={found[table].longest + run.sampling.max_tokens}")
    return [each for each in found.values() if each.ids]


def _long(table: Table, context: int, template: Template) -> LeftOut:
    around = len(template.opening((Message("user", ""),)))
    tasks = list(tasks_of(table))
    # a token is at least a byte
    seeing = {task.id for task in tasks if any(message.images for message in task.messages)}
    doubtful = [task for task in tasks if task.id in seeing or around + _most_tokens(task) >= context]
    lengths = {task.id: len(template.opening(task.messages)) for task in doubtful}
    ids = frozenset(id_ for id_, length in lengths.items() if length >= context)
    return LeftOut(table.path, ids, len(tasks), max(lengths.values(), default=0), context)


def _most_tokens(task: Task) -> int:
    return sum(_MARKERS + len(message.content.encode()) for message in task.messages)


def tasks_of(table: Table) -> Iterator[Task]:
    """All of them, of both sides."""
    for heldout in (False, True):
        yield from (table.task(index, heldout) for index in range(table.num_tasks(heldout)))
