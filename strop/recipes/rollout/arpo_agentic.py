"""Agents fork where they doubt after a tool's answer; what attempts share is credited with all of theirs.

Title: Agentic Reinforced Policy Optimization
Paper: arXiv 2507.19849 (2025)
Claim: Better than trajectory-level RL on 13 benchmarks of reasoning and search, with half of its tool calls.
Reading: See the mechanism for the rule of forks, whose constants are the release's: 16 attempts, 8 of them whole, at
    most 5 calls of tools. Credit is soft, plain GRPO over whole attempts, where a token that several share counts as
    often; `rule=mean` is the paper's hard credit. No KL, no bonus on entropy. Of the release's eight optimizer steps
    per draw four fit. Tools are those of a store, looked up and written to.
Left out: The penalty of -1 for a wrong format and the bonus of 0.1 for the use of two tools, which the world's pay does
    not know.
Acts: share/branched > 0 and fact/doubt_rise != 0 and shared_token_share > 0 and clipped_share > 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.interfaces import Player
from strop.generate.tree_search.branch import branch_of, branched
from strop.recipes.setting import Setting
from strop.roles import Strategy
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.requirements import Note
from strop.types import Group, Start, Trajectory

if TYPE_CHECKING:
    from torch import Tensor


# ARPO's forks (2507.19849): after an answer of the world, where the policy doubts more than at first, a path may fork.
#
# The measurement is the paper's, the chance of a fork is the release's: with H the summed entropy of a reply's first
# tokens over the logarithm of the vocabulary's size, a path forks before its reply with probability chance + weight *
# (H - H of its first reply), once per path and round. Readings: the whole distribution is measured, not its ten
# likeliest tokens. Paths are played to their end before the next round of forks is looked for, which draws the same
# trees; whatever of the budget no fork used is played from the start.

RISE = "doubt_rise"  # the fact of how much more than at first a path doubted where another branched off


def _doubt(scores: Tensor, tokens: Tensor) -> Tensor:
    logprobs = scores.log_softmax(-1)  # [C, V]
    return -(logprobs.exp() * logprobs).sum(-1) / math.log(scores.shape[-1])


DOUBT = Note("doubt", lambda output: output.over_logits(_doubt))  # entropy, 1 where nothing is known


@dataclass(frozen=True)
class _Path:
    """An attempt, and how much it doubted at the beginning of its replies."""

    attempt: Trajectory
    doubts: tuple[float, ...]  # of each reply; 0 where it was given
    first: float  # that of the first reply, its own or its ancestor's

    def rise(self, turn: int) -> float:
        return self.doubts[turn] - self.first

    def written_before(self, turn: int) -> int:
        return sum(len(each.tokens) for each in self.attempt.turns[:turn])


@dataclass(frozen=True)
class ToolForks(Strategy):
    """`whole` starts are played from the start; each further one may branch off before a later reply of another."""

    whole: int = 8  # attempts that fork from none
    chance: float = 0.5  # of a fork where doubt is as it was at first
    weight: float = 0.2  # of doubt that rose
    tokens: int = 20  # of each reply, over which doubt is summed

    def __post_init__(self) -> None:
        if self.whole < 1 or not 0 <= self.chance <= 1 or self.weight < 0 or self.tokens < 1:
            raise ConfigurationError(
                f"ToolForks needs whole >= 1, a chance from 0 to 1, weight >= 0 and tokens >= 1, got {self}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        random = np.random.default_rng(starts[0].key)
        roots, left = await together(play(start) for start in starts[: self.whole]), list(starts[self.whole :])
        made, paths = list(roots), await self._paths([(root, None) for root in roots], play)
        turn = 1
        while left and any(len(path.doubts) > turn for path in paths):
            forking = [path for path in paths if len(path.doubts) > turn and self._forks(path.rise(turn), random)]
            forks = list(zip(forking, left, strict=False))
            del left[: len(forks)]
            branches = await together(_fork(path, turn, start, play) for path, start in forks)
            paths += await self._paths([(b, path.first) for b, (path, _) in zip(branches, forks, strict=True)], play)
            made += branches
            turn += 1
        return [*made, *await together(play(start) for start in left)]

    def _forks(self, rise: float, random: np.random.Generator) -> bool:
        return bool(random.random() < self.chance + self.weight * rise)

    async def _paths(self, attempts: Sequence[tuple[Trajectory, float | None]], play: Player) -> list[_Path]:
        """Those that may fork; what the world failed may not."""
        open_ = [(attempt, first) for attempt, first in attempts if attempt.is_scored and attempt.num_tokens]
        looks = await play.look([attempt for attempt, _ in open_], frozenset({DOUBT})) if open_ else []
        found = []
        for (attempt, first), look in zip(open_, looks, strict=True):
            ends = np.cumsum([len(turn.tokens) for turn in attempt.turns])[:-1]
            replies = np.split(look[DOUBT.name].astype(np.float64), ends)
            doubts = tuple(float(reply[: self.tokens].sum()) for reply in replies)
            found.append(_Path(attempt, doubts, doubts[0] if first is None else first))
        return found


async def _fork(path: _Path, turn: int, start: Start, play: Player) -> Trajectory:
    branch = await branched(branch_of(path.attempt, path.written_before(turn), start), play)
    branch.facts[RISE] = path.rise(turn)
    return branch


_CALLS = 5  # of tools; a last reply may follow


def arpo_agentic(
    setting: Setting = Setting(world="keyvalue:4", group_size=16),
    chance: float = 0.5,  # of a fork where doubt is as it was at first
    weight: float = 0.2,  # of doubt that rose
    tokens: int = 20,  # of each reply, over which doubt is summed
    rule: str = "sum",  # soft credit of shared tokens; mean: hard
    minibatches: int = 4,  # optimizer steps per draw
) -> Run:
    """group_size attempts, of which up to a half branch off from others."""
    return setting.run(
        "arpo_agentic",
        AlongTree(GroupStandard(), rule),
        (Clip(),),
        agent=Chat(_CALLS + 1),
        strategy=ToolForks(max(setting.group_size // 2, 1), chance, weight, tokens),
        minibatches=minibatches,
    )
