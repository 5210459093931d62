"""SwS: tasks that stay unsolved with a falling pass rate lead to new problems on their concepts; GRPO on medium groups.

Title: SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning
Paper: arXiv 2506.08989 (2025)
Claim: 10.0 points on average for a 7B model and 7.7 for a 32B one, over eight benchmarks.
Reading: A weak task has a pass rate below a half that falls over its visits. The paper finds such tasks in a run of its
    own and makes the problem set for another; here problems are made as weaknesses are found. A problem is kept where
    the LLM client's answers agree and the policy solves a quarter to three quarters; groups with 1/8 to 7/8 right are
    trained on. A rule stands in for the LLM with the bundled environments: it names concepts, writes and solves. It is
    always right, so one vote is enough.
Left out: The cosine of embeddings in the choice of concepts, and two judges of a problem's quality.
Acts: written > 0 with seeds=6, groups_per_step=8
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from strop.control.samplers.few import Few
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.control.samplers.with_generated import WithWritten
from strop.control.seeded_choice import softmax
from strop.control.task_generators.support.probing import probed
from strop.control.task_generators.support.prompts import ask_llm, asked_for, requests, rewritten, try_request
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.gates.reward_band import RewardBand
from strop.recipes.named_parts import named_generator
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child, is_written
from strop.success import kind, successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.roles import Player


# Counts of concepts, alone and in pairs, and the choice of those to combine next.

_MOST = 1000  # known concepts; the first ones stay


@dataclass
class Concepts:
    """Concept counts; sampling takes the first by its count, the next ones by their co-occurrence with those chosen."""

    counts: dict[str, int] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)  # of two, in alphabetical order, joined by a tab

    def add(self, needed: Sequence[str]) -> None:
        known = [each for each in dict.fromkeys(needed) if each in self.counts or len(self.counts) < _MOST]
        for each in known:
            self.counts[each] = self.counts.get(each, 0) + 1
        for pair in (_pair(*two) for two in combinations(known, 2)):
            self.pairs[pair] = self.pairs.get(pair, 0) + 1

    def sample(self, count: int, temperature: float, key: int) -> list[str]:
        """`count` different concepts, or all: in proportion to counts, then by softmax(co-occurrence / temperature)."""
        stream, left = np.random.default_rng(key), list(self.counts)
        chosen: list[str] = []
        while left and len(chosen) < count:
            weights = softmax([self._cooccurrence(each, chosen) for each in left], temperature) if chosen else None
            if weights is None:
                weights = np.array([self.counts[each] for each in left], dtype=np.float64)
                weights /= weights.sum()
            chosen.append(left.pop(int(stream.choice(len(left), p=weights))))
        return chosen

    def _cooccurrence(self, one: str, others: Sequence[str]) -> float:
        return float(sum(self.pairs.get(_pair(one, other), 0) for other in others))

    def state(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "pairs": dict(self.pairs)}


def _pair(one: str, other: str) -> str:
    return "\t".join(sorted((one, other)))


# SwS's weaknesses (2506.08989): tasks that stay unsolved and get worse lead to new problems on their concepts.
#
# Reading: found during the run, where the paper has a separate run before; the slope is least squares over a task's
# visits, in the order of versions. Concepts combine by how often weak tasks need them together; the paper adds the
# cosine of their embeddings, which counts outweigh at its temperature. Every weak task asks for the same number of
# problems, so problems follow the distribution of failures. The history of a task restarts after it led to new
# problems.

_KNOWN = 10_000  # tasks whose pass rates are remembered, those sampled last
_LATEST = 32  # remembered visits of each
_ROUNDING = 1e-9
_SOLVED = 0.5  # pass rate that a weak task never reached
_CONCEPTS, _TEMPERATURE = 5, 0.2  # number of concepts per problem, temperature of their choice
_EASY_ENOUGH, _HARD_ENOUGH = 0.25 - _ROUNDING, 0.75 + _ROUNDING  # pass rate of the policy at a problem that is kept


@dataclass
class Weaknesses(TaskGenerator, Asks):
    """Task generator: new problems for each task whose pass rate stayed below a half and fell over at least `visits`
    visits.

    A problem is kept if more than half of the LLM client's answers agree, and the policy solves 1/4 to 3/4.
    """

    llm_client: LLMClient | None = None  # names concepts, writes problems and solves them; None: the policy itself
    visits: int = 2  # to a task before its slope is used
    exercises: int = 4  # problems requested per weak task
    votes: int = 1  # answers of the LLM client to its own problem
    probes: int = 4  # rollouts of the policy at the problem
    prompts: dict[str, str] = field(
        default_factory=lambda: requests("concepts", "about", "solved")
    )  # what is asked, by request

    _seen: dict[str, list[tuple[int, int, float]]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _tables: dict[str, Concepts] = field(default_factory=dict, init=False, repr=False, compare=False)  # by kind
    _named: dict[int, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)  # by group number

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.visits < 2 or min(self.exercises, self.votes, self.probes) < 1:
            raise ConfigurationError(
                "Weaknesses needs visits >= 2 and at least 1 of exercises, votes and probes, "
                f"got {self.visits}, {self.exercises}, {self.votes} and {self.probes}"
            )

    async def try_clients(self, task: Task) -> None:
        await try_request(self.llm_client, "solved", task, ("answer",), prompts=self.prompts)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if not self.is_weak(self._with(group)):
            return []
        task = group.task
        named = await asked_for(
            self.llm_client, "concepts", play, task=prompt_of(task), answer=task.answer, prompts=self.prompts
        )
        self._named[group.number] = [line.strip() for line in named.splitlines() if line.strip()]
        table = self._table(group)
        made: list[Task] = []
        for _ in range(self.exercises):
            ideas = table.sample(_CONCEPTS, _TEMPERATURE, play.another().key)
            try:
                problem = await rewritten(
                    self.llm_client, "about", task, play, ideas="\n".join(ideas), prompts=self.prompts
                )
                made += await self._accepted(problem, play)
            except LLMClientError:
                if not made:
                    raise
                break  # keep the problems that were already probed with rollouts
        return made

    async def _accepted(self, problem: Task, play: Player) -> list[Task]:
        asked = prompt_of(problem)
        answers = [
            await ask_llm(self.llm_client, "solved", play, ("answer",), task=asked, prompts=self.prompts)
            for _ in range(self.votes)
        ]
        label, count = Counter(answer["answer"] for answer in answers).most_common(1)[0]
        if not label or 2 * count <= self.votes:
            return []
        labelled = child(problem, prompt_of(problem), label)
        success = await probed(labelled, self.probes, play)
        return [labelled] if success is not None and _EASY_ENOUGH <= success <= _HARD_ENOUGH else []

    def is_weak(self, history: list[tuple[int, int, float]]) -> bool:
        """Never solved by half of its rollouts, with a falling pass rate."""
        found = [success for _, _, success in sorted(history)]
        if len(found) < self.visits or max(found) >= _SOLVED:
            return False
        return float(np.polyfit(range(len(found)), found, 1)[0]) < -_ROUNDING

    def observe(self, group: Group) -> None:
        """Remember the pass rate; the history of a weak task restarts."""
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
        """History of the group's task, this group included: version, number, pass rate; none for generated tasks."""
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


def sws(
    setting: Setting = Setting(env="arithmetic:6+countdown:4"),
    generator: str = "rules",  # names concepts, writes and solves (a named part)
    seeds: int = OfEndless(32),  # tasks of each environment; they repeat, or no slope could be measured; all of a table
    share: float = 0.5,  # largest share of new problems in a batch
    visits: int = 2,  # to a task before its slope is used
    exercises: int = 4,  # problems requested per weak task
    votes: int = 1,  # answers of the LLM client to its own problem; use more for a language model
    probes: int = 4,  # rollouts of the policy at a problem before it is kept
) -> Run:
    """New problems on the concepts of weak tasks."""
    run = setting.run("sws", GroupStandard(), (Clip(0.2, 0.28),), gates=(RewardBand(0.125, 0.875),))
    run.task_generator = Weaknesses(named_generator(generator, setting), visits, exercises, votes, probes)
    run.sampler = WithWritten(Few(run.envs, covering(run.envs, seeds)), share)
    return run
