"""Agents fork where they warning after a tool's answer; what rollouts share is credited with all of theirs.

Title: Agentic Reinforced Policy Optimization
Paper: arXiv 2507.19849 (2025)
Claim: Better than trajectory-level RL on 13 benchmarks of reasoning and search, with half of its tool calls.
Reading: See the mechanism for the rule of forks, whose constants are the release's: 16 rollouts, 8 of them whole, at
    most 5 calls of tools. Advantage is soft, plain GRPO over whole rollouts, where a token that several share counts as
    often; `rule=mean` is the paper's hard advantage. No KL, no bonus on entropy. Of the release's eight optimizer steps
    per batch four fit. Tools are those of a store, looked up and written to.
Left out: The penalty of -1 for a wrong format and the bonus of 0.1 for the use of two tools, which the environment's
    pay does not know.
Acts: share/branched > 0 and fact/warning_rise != 0 and shared_token_share > 0 and clipped_share > 0
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
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Rollout, Start

if TYPE_CHECKING:
    from torch import Tensor


# ARPO's forks (2507.19849): after an answer of the environment, where the policy warnings more than at first, a path
# may fork.
#
# The measurement is the paper's, the probability of a fork is the release's: with H the summed entropy of a
# completion's first
# tokens over the logarithm of the vocabulary's size, a path forks before its completion with probability probability +
# weight *
# (H - H of its first completion), once per path and round. Readings: the whole distribution is measured, not its ten
# likeliest tokens. Paths are played to their end before the next round of forks is looked for, which draws the same
# trees; whatever of the budget no fork used is played from the start.

RISE = "warning_rise"  # the fact of how much more than at first a path doubted where another branched off


def _warning(scores: Tensor, tokens: Tensor) -> Tensor:
    logprobs = scores.log_softmax(-1)  # [C, V]
    return -(logprobs.exp() * logprobs).sum(-1) / math.log(scores.shape[-1])


WARNING = PolicyStatistic("warning", lambda output: output.over_logits(_warning))  # entropy, 1 where nothing is known


@dataclass(frozen=True)
class _Path:
    """A rollout, and how much it doubted at the beginning of its completions."""

    rollout: Rollout
    warnings: tuple[float, ...]  # of each completion; 0 where it was given
    first: float  # that of the first completion, its own or its ancestor's

    def rise(self, turn: int) -> float:
        return self.warnings[turn] - self.first

    def written_before(self, turn: int) -> int:
        return sum(len(each.tokens) for each in self.rollout.turns[:turn])


@dataclass(frozen=True)
class ToolForks(Strategy):
    """`whole` starts are played from the start; each further one may branch off before a later completion of
    another.
    """

    whole: int = 8  # rollouts that fork from none
    probability: float = 0.5  # of a fork where warning is as it was at first
    weight: float = 0.2  # of warning that rose
    tokens: int = 20  # of each completion, over which warning is summed

    def __post_init__(self) -> None:
        if self.whole < 1 or not 0 <= self.probability <= 1 or self.weight < 0 or self.tokens < 1:
            raise ConfigurationError(
                f"ToolForks needs whole >= 1, a probability from 0 to 1, weight >= 0 and tokens >= 1, got {self}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        random = np.random.default_rng(starts[0].key)
        roots, left = await together(play(start) for start in starts[: self.whole]), list(starts[self.whole :])
        made, paths = list(roots), await self._paths([(root, None) for root in roots], play)
        turn = 1
        while left and any(len(path.warnings) > turn for path in paths):
            forking = [path for path in paths if len(path.warnings) > turn and self._forks(path.rise(turn), random)]
            forks = list(zip(forking, left, strict=False))
            del left[: len(forks)]
            branches = await together(_fork(path, turn, start, play) for path, start in forks)
            paths += await self._paths([(b, path.first) for b, (path, _) in zip(branches, forks, strict=True)], play)
            made += branches
            turn += 1
        return [*made, *await together(play(start) for start in left)]

    def _forks(self, rise: float, random: np.random.Generator) -> bool:
        return bool(random.random() < self.probability + self.weight * rise)

    async def _paths(self, rollouts: Sequence[tuple[Rollout, float | None]], play: Player) -> list[_Path]:
        """Those that may fork; what the environment failed may not."""
        open_ = [(rollout, first) for rollout, first in rollouts if rollout.is_scored and rollout.num_tokens]
        looks = await play.look([rollout for rollout, _ in open_], frozenset({WARNING})) if open_ else []
        found = []
        for (rollout, first), look in zip(open_, looks, strict=True):
            ends = np.cumsum([len(turn.tokens) for turn in rollout.turns])[:-1]
            completions = np.split(look[WARNING.name].astype(np.float64), ends)
            warnings = tuple(float(completion[: self.tokens].sum()) for completion in completions)
            found.append(_Path(rollout, warnings, warnings[0] if first is None else first))
        return found


async def _fork(path: _Path, turn: int, start: Start, play: Player) -> Rollout:
    branch = await branched(branch_of(path.rollout, path.written_before(turn), start), play)
    branch.facts[RISE] = path.rise(turn)
    return branch


_CALLS = 5  # of tools; a last completion may follow


def arpo_agentic(
    setting: Setting = Setting(env="keyvalue:4", group_size=16),
    probability: float = 0.5,  # of a fork where warning is as it was at first
    weight: float = 0.2,  # of warning that rose
    tokens: int = 20,  # of each completion, over which warning is summed
    rule: str = "sum",  # soft advantage of shared tokens; mean: hard
    minibatches: int = 4,  # optimizer steps per batch
) -> Run:
    """group_size rollouts, of which up to a half branch off from others."""
    return setting.run(
        "arpo_agentic",
        AlongTree(GroupStandard(), rule),
        (Clip(),),
        agent=Chat(_CALLS + 1),
        strategy=ToolForks(max(setting.group_size // 2, 1), probability, weight, tokens),
        minibatches=minibatches,
    )
