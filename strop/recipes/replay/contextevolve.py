"""Candidates that follow each other, each reading a direction and short summaries of those before it; no training.

Title: ContextEvolve: Multi-Agent Context Compression for Systems Code Optimization
Paper: arXiv 2602.02597 (2026)
Claim: A third better than other evolutionary searches on systems code, with 29 % fewer tokens.
Reading: Only abstract and digests were found: priorities and prompts are a plain reading. Candidates are scored while
    the search goes on, as in the paper, whose evaluator is at hand: held-out accuracy is that of the best of
    `iterations` candidates by the environment's own judgement, to be compared with `strop eval --k 6` and not with
    pass@1. A rule of the bundled environments summarises in place of three language models.
Left out: Code as the thing that evolves; an archive that lives longer than one task.
Acts: fact/candidates > 1 and fact/gained > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from strop.concurrency import together
from strop.control.seeded_choice import Doubles, drawn, softmax
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.generate.memory.inject import fitting, with_help
from strop.generate.memory.reflect import reflected, trace
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Strategy
from strop.run import Run
from strop.success import is_right
from strop.training.advantages.constant import Constant
from strop.training.losses.reinforce import Reinforce
from strop.types import Group, Rollout, Start, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


# ContextEvolve's search (2602.02597): candidates follow each other, and what each new one reads is kept short.
#
# Every candidate is scored, summarised (what it kept of its parent, what it changed) and archived. The next one reads a
# direction, said of the sequence of summaries and scores; the parent, which is the best so far, as it is; and a few
# other candidates as their summaries. Readings: exemplars are drawn by a softmax over the ranks of their scores and one
# of them evenly, since the paper's priorities are not published; the direction is said of the last candidates alone, so
# that no prompt grows with the number of iterations; a search ends when nothing better is possible.

_REMEMBERED = 8  # candidates of which a direction is said


@dataclass(frozen=True)
class _Candidate:
    rollout: Rollout
    score: float
    summary: str


@dataclass(frozen=True)
class EvolvedContext(Strategy):
    """Each start is a search of at most `iterations` candidates; the best of them is the rollout."""

    llm_client: LLMClient | None = None  # who summarises and points the way; None: the policy itself
    iterations: int = 6  # candidates
    exemplars: int = 3  # that are read as their summaries
    longest: int = 200  # characters of all that stands before a task
    right: float = 1.0  # reward that cannot be bettered

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.exemplars < 1:
            raise ConfigurationError(
                f"EvolvedContext needs iterations >= 1 and exemplars >= 1, got {self.iterations} and {self.exemplars}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        return await together(self._search(group.task, start, play.apart(start)) for start in starts)

    async def _search(self, task: Task, start: Start, play: Player) -> Rollout:
        archive, made = list[_Candidate](), list[Rollout]()
        for number in range(self.iterations):
            texts = await self._context(task, archive, (start.key, number), play) if archive else []
            rollout = await play(with_help(play.another() if made else start, task, texts))
            made.append(rollout)
            (score,) = await play.score([rollout])
            if score is None:
                continue
            archive.append(_Candidate(rollout, score, await self._summary(task, rollout, archive, play)))
            if is_right(score, self.right):
                break
        best = max(archive, key=lambda each: each.score).rollout if archive else made[0]
        gained = max(each.score for each in archive) - archive[0].score if archive else 0.0
        return replace(best, facts=best.facts | {"candidates": float(len(made)), "gained": gained})

    async def _summary(self, task: Task, rollout: Rollout, archive: Sequence[_Candidate], play: Player) -> str:
        """What a candidate is, of failures too; where nothing is said, how it begins."""
        shown = {"task": prompt_of(task), "completion": trace(rollout)}
        if archive:
            shown["other"] = max(archive, key=lambda each: each.score).summary
        said = await reflected(self.llm_client, "summary", play, **shown)
        return " ".join(said.split())[: self.longest] or trace(rollout)[: self.longest]

    async def _context(
        self, task: Task, archive: Sequence[_Candidate], key: tuple[int, ...], play: Player
    ) -> list[str]:
        """What the next candidate reads before the task."""
        told = "\n".join(f"{each.score:.2f} {each.summary}" for each in archive[-_REMEMBERED:])
        direction = await reflected(self.llm_client, "direction", play, task=prompt_of(task), ideas=told)
        parent = max(archive, key=lambda each: each.score)
        others = [each for each in archive if each is not parent]
        chosen = [others[place].summary for place in picked([each.score for each in others], self.exemplars, key)]
        return fitting([" ".join(direction.split()), " ".join(trace(parent.rollout).split()), *chosen], self.longest)


def priorities(scores: Sequence[float]) -> Doubles:
    """Softmax over ranks, the highest score first, of equals the older: [N]."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(-np.asarray(scores), kind="stable")] = np.arange(len(scores))
    return softmax(-ranks) if len(scores) else ranks


def picked(scores: Sequence[float], count: int, key: Sequence[int]) -> list[int]:
    """`count` different places: all but one by priority, the last one evenly among those left."""
    if len(scores) <= count:
        return list(range(len(scores)))
    first = drawn(priorities(scores), count - 1, (*key, 0))
    left = [place for place in range(len(scores)) if place not in first]
    return [*first, left[int(np.random.default_rng([*key, 1]).integers(len(left)))]]


def contextevolve(
    setting: Setting = Setting(env="arithmetic:5", group_size=1, steps=4),
    llm_client: str = "rules",  # who summarises and points the way: rules, itself, or http://HOST:PORT/v1#MODEL
    iterations: int = 6,  # candidates of one search: the last has more before it than it may read
    exemplars: int = 3,  # that are read as their summaries
    longest: int = 200,  # characters of all that stands before a task
) -> Run:
    """group_size searches of each task; the best candidate of each is the rollout."""
    search = EvolvedContext(parse_reflector(llm_client), iterations, exemplars, longest)
    run = setting.run("contextevolve", Constant(), (Reinforce(weight=0.0),), strategy=search)
    return replace(run, evaluation=replace(run.evaluation, strategy=search))
