"""Rollouts condensed to notes, compared in pairs by votes, the best notes read by a second round; no training.

Title: Scaling Test-Time Compute for Agentic Coding
Paper: arXiv 2604.16529 (2026)
Claim: Claude-4.5-Opus goes from 70.9 to 77.6 % on SWE-Bench Verified and from 46.9 to 59.1 % on Terminal-Bench 2.0.
Reading: Pairs, eight votes and 16 rollouts are the paper's; how many notes are read was not found. Who comes before the
    other is shuffled for every vote. The loss weighs nothing, and held-out tasks are tried in the same way. A rule
    of the bundled environments condenses and votes in place of a language model: it knows no answers, and sees wrong
    steps.
    The bundled model was shown hints of two steps at most and is lost beside several notes; rounds=1 is the tournament
    alone, which on arithmetic:5 makes 59 % right with 4 rollouts where one makes 27 %.
Left out: Groups of more than two, and coding agents.
Acts: fact/comparisons > 1 and fact/notes > 0 with rollouts=3, votes=2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting
from strop.generate.memory.reflect import reflected, trace
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Origin, Outcome, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


# Recursive tournament voting with parallel distillation and refinement (2604.16529): many rollouts become one.
#
# Every rollout is condensed to a note. Two notes at a time are compared by several votes, each of which sees them in an
# order of its own, and winners go on until one is left. Before that, the best few notes of a round stand beside the
# task for the rollouts of the next, which begin in fresh environments. Nothing is scored on the way.

Noted: TypeAlias = tuple[Rollout, str]


@dataclass(frozen=True)
class Tournament(Strategy):
    """Each start is `rounds` rounds of `rollouts` rollouts; the winner of the last round is the rollout.

    Its facts say how many comparisons there were, and how many notes the last round read.
    """

    llm_client: LLMClient | None = None  # who condenses and votes; None: the policy itself
    rollouts: int = 16  # rollouts of a round
    kept: int = 4  # notes that the next round reads
    rounds: int = 2
    votes: int = 8  # of one comparison
    longest: int = 200  # characters of all notes that stand beside a task
    asks: str = "{question} hint: {notes}"  # how the next round reads them

    def __post_init__(self) -> None:
        if min(self.rollouts, self.kept, self.rounds, self.votes) < 1 or "{notes}" not in self.asks:
            raise ConfigurationError(
                "Tournament needs rollouts, kept, rounds and votes >= 1 and {notes} in asks, got "
                f"{self.rollouts}, {self.kept}, {self.rounds}, {self.votes} and {self.asks!r}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(self._refined(group.task, start, play.apart(start)) for start in starts)

    async def _refined(self, task: Task, start: Start, play: Player) -> Rollout:
        notes, compared = list[str](), 0
        for number in range(self.rounds):
            read = fitting(notes, self.longest)
            begun = [play.another() if number or place else start for place in range(self.rollouts)]
            made = await together(play(self._reading(each, task, read)) for each in begun)
            noted = await together(self._noted(task, each, play) for each in made)  # asked in order, whoever was quick
            is_last = number == self.rounds - 1
            left, times = await self.survivors(task, noted, 1 if is_last else self.kept, play)
            notes, compared = [note for _, note in left], compared + times
        winner = left[0][0]
        return replace(winner, facts=winner.facts | {"comparisons": float(compared), "notes": float(len(read))})

    def _reading(self, start: Start, task: Task, notes: Sequence[str]) -> Start:
        if not notes:
            return start
        *before, last = task.messages
        told = self.asks.format(question=last.content, notes=" ".join(notes))
        return replace(start, messages=(*before, replace(last, content=told)), origin=Origin.GUIDED)

    async def _noted(self, task: Task, rollout: Rollout, play: Player) -> Noted:
        said = await reflected(self.llm_client, "note", play, task=prompt_of(task), completion=trace(rollout))
        return rollout, " ".join(said.split())[: self.longest]

    async def survivors(self, task: Task, noted: Sequence[Noted], count: int, play: Player) -> tuple[list[Noted], int]:
        """Whoever is left of pairs of winners, and how many comparisons that took; an environment's failure never
        plays.
        """
        left = [each for each in noted if each[0].outcome is not Outcome.FAILED] or list(noted[:1])
        compared = 0
        while len(left) > count:
            num_pairs = min(len(left) // 2, len(left) - count)
            pairs = [(left[2 * place], left[2 * place + 1]) for place in range(num_pairs)]
            compared += num_pairs
            won = await together(self._won(task, *pair, play) for pair in pairs)
            left = [*won, *left[2 * num_pairs :]]  # the odd one goes on without a comparison
        return left, compared

    async def _won(self, task: Task, one: Noted, other: Noted, play: Player) -> Noted:
        """By votes; where they are even, by the coin of this comparison."""
        random = np.random.default_rng(play.another().key)
        turned = [bool(each) for each in random.integers(2, size=self.votes)]
        said = await together(self._vote(task, one[1], other[1], is_turned, play) for is_turned in turned)
        lead = sum(said)
        return one if lead > 0 or (lead == 0 and random.random() < 0.5) else other

    async def _vote(self, task: Task, one: str, other: str, is_turned: bool, play: Player) -> int:
        """1 for the one, -1 for the other, 0 where neither is named."""
        first, second = (other, one) if is_turned else (one, other)
        said = await reflected(self.llm_client, "vote", play, task=prompt_of(task), ideas=first, other=second)
        named = {"1": 1, "2": -1}.get(said.strip()[:1], 0)
        return -named if is_turned else named


def rtv_pdr(
    setting: Setting = Setting(env="arithmetic:5", group_size=1, steps=4, heldout_tasks=32),
    llm_client: str = "rules",  # who condenses and votes: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    rollouts: int = 16,  # rollouts of a round
    kept: int = 4,  # notes that the next round reads
    rounds: int = 2,  # of rollouts
    votes: int = 8,  # of one comparison
    longest: int = 200,  # characters of all notes that stand beside a task
) -> Run:
    """group_size tournaments of each task; the winner of each is the rollout."""
    search = Tournament(parse_reflector(llm_client), rollouts, kept, rounds, votes, longest)
    run = setting.run("rtv_pdr", Constant(), (Reinforce(weight=0.0),), strategy=search)
    return replace(run, evaluation=replace(run.evaluation, strategy=search))
