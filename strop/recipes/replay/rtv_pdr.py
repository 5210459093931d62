"""RTV and PDR: rollouts are summarized, pairwise votes select the best, a second round reads them; no training.

Title: Scaling Test-Time Compute for Agentic Coding
Paper: arXiv 2604.16529 (2026)
Claim: Claude-4.5-Opus goes from 70.9 to 77.6 % on SWE-Bench Verified and from 46.9 to 59.1 % on Terminal-Bench 2.0.
Reading: Pairs, 8 votes and 16 rollouts are the paper's; how many summaries the second round reads was not found. The
    order within a pair is shuffled for every vote. The loss has weight 0, and held-out tasks use the same search. A
    stand-in rule for the bundled environments summarizes and votes in place of an LLM: it does not know the answers
    but recognizes wrong steps.
    The bundled model was trained with hints of at most two steps and fails on a prompt with several summaries.
    rounds=1 is the tournament alone: on arithmetic:5 it solves 59 % with 4 rollouts, a single rollout 27 %.
Left out: Groups of more than two, and coding agents.
Acts: fact/comparisons > 1 and fact/notes > 0 with rollouts=3, votes=2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import unread
from strop.filter.judges.readers import OneWord
from strop.generate.memory.inject import fitting
from strop.generate.memory.reflect import reflected, reflections, trace, try_reflection
from strop.recipes.named_parts import named_reflector
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Origin, Outcome, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.roles import Player


# Recursive tournament voting (RTV) with parallel distillation and refinement (PDR), 2604.16529.
#
# Every rollout is summarized. Several votes compare two summaries, each vote in its own order; the winners advance
# until one is left. The best summaries of a round are put into the prompt of the next round, whose rollouts start in
# fresh environments. No rollout is scored during the search.

Summarized: TypeAlias = tuple[Rollout, str]


_VOTE = OneWord({"1": 1.0, "2": -1.0})  # for the first or the second note


@dataclass(frozen=True)
class Tournament(Strategy, Asks):
    """One search per start: `rounds` rounds of `rollouts` rollouts; returns the winner of the last round.

    Its facts hold the number of comparisons and the number of summaries that the last round read.
    """

    llm_client: LLMClient | None = None  # summarizes and votes; None: the policy itself
    rollouts: int = 16  # rollouts of a round
    kept: int = 4  # summaries that the next round reads
    rounds: int = 2
    votes: int = 8  # per comparison
    longest: int = 200  # characters of all summaries in a prompt
    asks: str = "{question} hint: {notes}"  # prompt of the next round
    prompts: dict[str, str] = field(default_factory=lambda: reflections("note", "vote"))  # what is asked, by request

    def __post_init__(self) -> None:
        if min(self.rollouts, self.kept, self.rounds, self.votes) < 1 or "{notes}" not in self.asks:
            raise ConfigurationError(
                "Tournament needs rollouts, kept, rounds and votes >= 1 and {notes} in asks, got "
                f"{self.rollouts}, {self.kept}, {self.rounds}, {self.votes} and {self.asks!r}"
            )

    async def try_clients(self, task: Task) -> None:
        await try_reflection(self.llm_client, "note", task, prompts=self.prompts)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(self._refined(group.task, start, play.apart(start)) for start in starts)

    async def _refined(self, task: Task, start: Start, play: Player) -> Rollout:
        notes, compared = list[str](), 0
        for number in range(self.rounds):
            read = fitting(notes, self.longest)
            fresh = [play.another() if number or place else start for place in range(self.rollouts)]
            made = await together(play(self._reading(each, task, read)) for each in fresh)
            summarized = await together(
                self._summarized(task, each, play) for each in made
            )  # in order of start, not of finish
            is_last = number == self.rounds - 1
            left, times = await self.survivors(task, summarized, 1 if is_last else self.kept, play)
            notes, compared = [note for _, note in left], compared + times
        winner = left[0][0]
        return replace(winner, facts=winner.facts | {"comparisons": float(compared), "notes": float(len(read))})

    def _reading(self, start: Start, task: Task, notes: Sequence[str]) -> Start:
        if not notes:
            return start
        *before, last = task.messages
        content = self.asks.format(question=last.content, notes=" ".join(notes))
        return replace(start, messages=(*before, replace(last, content=content)), origin=Origin.GUIDED)

    async def _summarized(self, task: Task, rollout: Rollout, play: Player) -> Summarized:
        summary = await reflected(
            self.llm_client, "note", play, task=prompt_of(task), completion=trace(rollout), prompts=self.prompts
        )
        return rollout, " ".join(summary.split())[: self.longest]

    async def survivors(
        self, task: Task, summarized: Sequence[Summarized], count: int, play: Player
    ) -> tuple[list[Summarized], int]:
        """The last `count` winners of pairwise comparisons, and the number of comparisons; failed rollouts are out."""
        left = [each for each in summarized if each[0].outcome is not Outcome.FAILED] or list(summarized[:1])
        compared = 0
        while len(left) > count:
            num_pairs = min(len(left) // 2, len(left) - count)
            pairs = [(left[2 * place], left[2 * place + 1]) for place in range(num_pairs)]
            compared += num_pairs
            won = await together(self._won(task, *pair, play) for pair in pairs)
            left = [*won, *left[2 * num_pairs :]]  # an unpaired rollout advances without a comparison
        return left, compared

    async def _won(self, task: Task, one: Summarized, other: Summarized, play: Player) -> Summarized:
        """The winner by majority; a tie is broken at random, with this comparison's seed."""
        random = np.random.default_rng(play.another().key)
        turned = [bool(each) for each in random.integers(2, size=self.votes)]
        cast = await together(self._vote(task, one[1], other[1], is_turned, play) for is_turned in turned)
        lead = sum(cast)
        return one if lead > 0 or (lead == 0 and random.random() < 0.5) else other

    async def _vote(self, task: Task, one: str, other: str, is_turned: bool, play: Player) -> int:
        """1 for `one`, -1 for `other`, 0 where the completion names neither."""
        first, second = (other, one) if is_turned else (one, other)
        vote = await reflected(
            self.llm_client, "vote", play, task=prompt_of(task), ideas=first, other=second, prompts=self.prompts
        )
        if (named := _VOTE.read(vote)) is None and vote:
            unread(self.llm_client, vote, "neither 1 nor 2 in")
        lead = round(named or 0.0)
        return -lead if is_turned else lead


def rtv_pdr(
    setting: Setting = Setting(env="arithmetic:5", group_size=1, steps=4, heldout_tasks=32),
    teacher: str = "rules",  # summarizes and votes (a named part)
    rollouts: int = 16,  # rollouts of a round
    kept: int = 4,  # summaries that the next round reads
    rounds: int = 2,  # rounds of rollouts
    votes: int = 8,  # votes per comparison
    longest: int = 0,  # characters of all summaries in a prompt; 0: 200, and 1000 for a model of yours
) -> Run:
    """group_size tournaments per task; each returns its winner."""
    longest = setting.text_room(longest)
    search = Tournament(named_reflector(teacher, setting), rollouts, kept, rounds, votes, longest)
    run = setting.run("rtv_pdr", Constant(), (Reinforce(weight=0.0),), strategy=search)
    return replace(run, evaluation=replace(run.evaluation, strategy=search))
