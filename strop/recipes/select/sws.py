"""Tasks that stay unsolved and get worse are answered with new problems of the same concepts.

Title: SwS: Self-aware Weakness-driven Problem Synthesis in Reinforcement Learning for LLM Reasoning
Paper: arXiv 2506.08989 (2025)
Claim: 10.0 points on average for a 7B model and 7.7 for a 32B one, over eight benchmarks.
Reading: Weak is a task whose success stays below a half and falls over its visits. The paper finds such tasks in a run
    of its own and makes the set for another; here problems come as weaknesses are found. They are taken where the
    LLM client agrees with itself and the policy solves a quarter to three quarters; groups stay with 1/8 to 7/8 right.
    Rules of the bundled environments name concepts, write and solve; theirs are always right, so one vote is enough.
Left out: The cosine of embeddings in the choice of concepts, and two judges of a problem's quality.
Acts: written > 0 with seeds=6, groups_per_step=8
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.seeded_choice import softmax
from strop.control.task_generators.support.probing import probed
from strop.control.task_generators.support.prompts import advice, asked_for, rewritten
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.gates.reward_band import RewardBand
from strop.recipes.llm_clients import parse_llm_client
from strop.recipes.setting import Setting
from strop.roles import LLMClient, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child, is_written
from strop.success import kind, successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


# What problems are about: how often concepts were needed, alone and together, and which to combine next.

_MOST = 1000  # concepts that are known; those that came first stay


@dataclass
class Concepts:
    """The first concept by how often it was needed, the next ones by how often together with those chosen."""

    counts: dict[str, int] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)  # of two, in the order of letters, joined by a tab

    def add(self, needed: Sequence[str]) -> None:
        known = [each for each in dict.fromkeys(needed) if each in self.counts or len(self.counts) < _MOST]
        for each in known:
            self.counts[each] = self.counts.get(each, 0) + 1
        for pair in (_pair(*two) for two in combinations(known, 2)):
            self.pairs[pair] = self.pairs.get(pair, 0) + 1

    def draw(self, count: int, temperature: float, key: int) -> list[str]:
        """So many different ones, or all there are: shares of the counts, then softmax(together / temperature)."""
        stream, left = np.random.default_rng(key), list(self.counts)
        chosen: list[str] = []
        while left and len(chosen) < count:
            weights = softmax([self._together(each, chosen) for each in left], temperature) if chosen else None
            if weights is None:
                weights = np.array([self.counts[each] for each in left], dtype=np.float64)
                weights /= weights.sum()
            chosen.append(left.pop(int(stream.choice(len(left), p=weights))))
        return chosen

    def _together(self, one: str, others: Sequence[str]) -> float:
        return float(sum(self.pairs.get(_pair(one, other), 0) for other in others))

    def state(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "pairs": dict(self.pairs)}


def _pair(one: str, other: str) -> str:
    return "\t".join(sorted((one, other)))


# SwS's weaknesses (2506.08989): what stays unsolved and gets worse is practised on new problems of the same concepts.
#
# Reading: found while the run goes on, where the paper has a run before for it; the slope is least squares over a
# task's visits, in the order of versions. Concepts combine by how often weak tasks need them together; the paper adds
# the cosine of their embeddings, which counts outweigh at its temperature. Each weak task of an environment and level
# asks for
# as many new problems, so that these are shared out as failures are. One that was answered with new problems begins
# anew.

_KNOWN = 10_000  # tasks whose success is remembered, those tried last
_LATEST = 32  # visits of each
_ROUNDING = 1e-9
_SOLVED = 0.5  # success that a weak task never reached
_CONCEPTS, _TEMPERATURE = 5, 0.2  # of one problem, and of their choice
_EASY_ENOUGH, _HARD_ENOUGH = 0.25 - _ROUNDING, 0.75 + _ROUNDING  # success of the policy at a problem that is taken


@dataclass
class Weaknesses(TaskGenerator):
    """New problems for each task whose success stayed below a half and fell over at least `visits` visits.

    A problem is taken if more than half of the LLM client's answers to it agree, and the policy solves 1/4 to 3/4.
    """

    llm_client: LLMClient | None = None  # who names concepts, writes problems and solves them; None: the policy itself
    visits: int = 2  # to a task, before its slope says anything
    exercises: int = 4  # asked for at each weakness
    votes: int = 1  # answers of the LLM client to its own problem
    probes: int = 4  # rollouts of the policy at it

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
        named = await asked_for(self.llm_client, "concepts", play, task=prompt_of(task), answer=task.answer)
        self._named[group.number] = [line.strip() for line in named.splitlines() if line.strip()]
        table = self._table(group)
        made: list[Task] = []
        for _ in range(self.exercises):
            ideas = table.draw(_CONCEPTS, _TEMPERATURE, play.another().key)
            try:
                problem = await rewritten(self.llm_client, "about", task, play, ideas="\n".join(ideas))
            except LLMClientError:
                if not made:
                    raise
                break  # what was paid for with rollouts is not thrown away with it
            made += await self._accepted(problem, play)
        return made

    async def _accepted(self, problem: Task, play: Player) -> list[Task]:
        told = [await advice(self.llm_client, "solved", play, task=prompt_of(problem)) for _ in range(self.votes)]
        label, count = Counter(said.get("answer", "") for said in told).most_common(1)[0]
        if not label or 2 * count <= self.votes:
            return []
        labelled = child(problem, prompt_of(problem), label)
        success = await probed(labelled, self.probes, play)
        return [labelled] if success is not None and _EASY_ENOUGH <= success <= _HARD_ENOUGH else []

    def is_weak(self, history: list[tuple[int, int, float]]) -> bool:
        """Never solved by half of its rollouts, and falling."""
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


def sws(
    setting: Setting = Setting(env="arithmetic:6+countdown:4"),
    llm_client: str = "rules",  # who names concepts, writes and solves: rules, itself, or http://HOST:PORT/v1#MODEL
    seeds: int = 32,  # tasks of each environment; they come back, or nothing could be seen to get worse
    share: float = 0.5,  # of the batches that new problems may have
    visits: int = 2,  # to a task, before its slope says anything
    exercises: int = 4,  # problems asked for at each weakness
    votes: int = 1,  # answers of the LLM client to its own problem; more of a language model
    probes: int = 4,  # rollouts of the policy at a problem before it is taken
) -> Run:
    """Practice where it is needed, on what can be learned."""
    run = setting.run("sws", GroupStandard(), (Clip(0.2, 0.28),), gates=(RewardBand(0.125, 0.875),))
    run.task_generator = Weaknesses(parse_llm_client(llm_client), visits, exercises, votes, probes)
    run.sampler = WithWritten(Few(run.envs, seeds), share)
    return run
