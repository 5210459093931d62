"""SwS's weaknesses (2506.08989): what stays unsolved and gets worse is practised on new problems of the same concepts.

Reading: found while the run goes on, where the paper has a run before for it; the slope is least squares over a task's
visits, in the order of versions. Concepts combine by how often weak tasks need them together; the paper adds the cosine
of their embeddings, which counts outweigh at its temperature. Each weak task of a world and level asks for as many new
problems, so that these are shared out as failures are. One that was answered with new problems begins anew.
Papers: sws
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from strop.control.concepts import Concepts
from strop.control.task_generators.support.probing import probed
from strop.control.task_generators.support.prompts import advice, asked_for, rewritten
from strop.environments.data.heldout_split import prompt_of
from strop.errors import AdviserError, ConfigurationError
from strop.roles import Adviser, Writer
from strop.stats.task_lineage import child, is_written
from strop.success import kind, successes
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player

_KNOWN = 10_000  # tasks whose success is remembered, those tried last
_LATEST = 32  # visits of each
_ROUNDING = 1e-9
_SOLVED = 0.5  # success that a weak task never reached
_CONCEPTS, _TEMPERATURE = 5, 0.2  # of one problem, and of their choice
_EASY_ENOUGH, _HARD_ENOUGH = 0.25 - _ROUNDING, 0.75 + _ROUNDING  # success of the policy at a problem that is taken


@dataclass
class Weaknesses(Writer):
    """New problems for each task whose success stayed below a half and fell over at least `visits` visits.

    A problem is taken if more than half of the adviser's answers to it agree, and the policy solves 1/4 to 3/4.
    """

    adviser: Adviser | None = None  # who names concepts, writes problems and solves them; None: the policy itself
    visits: int = 2  # to a task, before its slope says anything
    exercises: int = 4  # asked for at each weakness
    votes: int = 1  # answers of the adviser to its own problem
    probes: int = 4  # attempts of the policy at it

    _seen: dict[str, list[tuple[int, int, float]]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _tables: dict[str, Concepts] = field(default_factory=dict, init=False, repr=False, compare=False)  # by kind
    _named: dict[int, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)  # until observed

    def __post_init__(self) -> None:
        if self.visits < 2 or min(self.exercises, self.votes, self.probes) < 1:
            raise ConfigurationError(
                "Weaknesses needs visits >= 2 and at least 1 of exercises, votes and probes, "
                f"got {self.visits}, {self.exercises}, {self.votes} and {self.probes}"
            )

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if not self.is_weak(self._with(group)):
            return []
        task = group.task
        named = await asked_for(self.adviser, "concepts", play, task=prompt_of(task), answer=task.answer)
        self._named[group.number] = [line.strip() for line in named.splitlines() if line.strip()]
        table = self._table(group)
        made: list[Task] = []
        for _ in range(self.exercises):
            ideas = table.draw(_CONCEPTS, _TEMPERATURE, play.another().key)
            try:
                problem = await rewritten(self.adviser, "about", task, play, ideas="\n".join(ideas))
            except AdviserError:
                if not made:
                    raise
                break  # what was paid for with attempts is not thrown away with it
            made += await self._accepted(problem, play)
        return made

    async def _accepted(self, problem: Task, play: Player) -> list[Task]:
        told = [await advice(self.adviser, "solved", play, task=prompt_of(problem)) for _ in range(self.votes)]
        label, count = Counter(said.get("answer", "") for said in told).most_common(1)[0]
        if not label or 2 * count <= self.votes:
            return []
        labelled = child(problem, prompt_of(problem), label)
        success = await probed(labelled, self.probes, play)
        return [labelled] if success is not None and _EASY_ENOUGH <= success <= _HARD_ENOUGH else []

    def is_weak(self, history: list[tuple[int, int, float]]) -> bool:
        """Never solved by half of its attempts, and falling."""
        found = [success for _, _, success in sorted(history)]
        if len(found) < self.visits or max(found) >= _SOLVED:
            return False
        return float(np.polyfit(range(len(found)), found, 1)[0]) < -_ROUNDING

    def observe(self, group: Group) -> None:
        """Remember how it went; a weakness that was answered begins anew."""
        history = self._with(group)
        self._seen.pop(group.task.id, None)
        if history:
            self._seen[group.task.id] = [] if self.is_weak(history) else history[-_LATEST:]
        while len(self._seen) > _KNOWN:
            del self._seen[next(iter(self._seen))]
        if group.number in self._named:
            self._tables[kind(group.task)] = self._table(group)
            del self._named[group.number]

    def _with(self, group: Group) -> list[tuple[int, int, float]]:
        """What is known of its task, this group included: version, number and success; nothing of written tasks."""
        right, count = successes(group)
        if is_written(group.task):
            return []
        before = self._seen.get(group.task.id, [])
        return [*before, (group.version, group.number, right / count)] if count else before

    def _table(self, group: Group) -> Concepts:
        known = self._tables.get(kind(group.task), Concepts())
        table = Concepts(dict(known.counts), dict(known.pairs))
        table.add(self._named[group.number])
        return table

    def state(self) -> dict[str, Any]:
        return {"seen": self._seen, "tables": {name: table.state() for name, table in self._tables.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._seen = {name: [(int(v), int(n), float(a)) for v, n, a in each] for name, each in state["seen"].items()}
        self._tables = {name: Concepts(**table) for name, table in state["tables"].items()}
