"""ARPO: GRPO for tool use; branches where entropy rose after a tool result; shared tokens get all advantages.

Title: Agentic Reinforced Policy Optimization
Paper: arXiv 2507.19849 (2025)
Claim: Better than trajectory-level RL on 13 benchmarks of reasoning and search, with half of its tool calls.
Reading: The branching rule is described at the mechanism; its constants are the release's: 16 rollouts, 8 of them from
    the prompt, at most 5 tool calls. The advantage is the soft one: plain GRPO over whole rollouts, where a token that
    several rollouts share counts once for each; `rule=mean` is the paper's hard advantage. No KL penalty, no entropy
    bonus. Of the release's eight optimizer steps per batch four fit. The tools read and write a key-value store.
Left out: The penalty of -1 for a wrong format and the bonus of 0.1 for the use of two tools: the environment's reward
    has neither.
Acts: share/branched > 0 and fact/entropy_rise != 0 and shared_token_share > 0 and clipped_share > 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from strop.concurrency import together
from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.tree_search.branch import branch_of, branched
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.requirements import PolicyStatistic
from strop.types import Group, Rollout, Start

if TYPE_CHECKING:
    from torch import Tensor


# ARPO's branching rule (2507.19849): after a tool's answer, a path may branch where the policy's entropy is higher than
# at its first completion.
#
# The measurement is the paper's, the branching probability the release's. H is the entropy summed over a completion's
# first tokens and divided by the logarithm of the vocabulary size. A path branches before a completion with probability
# `probability + weight * (H - H of its first completion)`, once per path and round. Readings: H is of the whole
# distribution, not of its ten likeliest tokens. All paths are played to their end before the next round of branches is
# sampled; this gives the same trees. Starts that no branch used are played from the prompt.

RISE = "entropy_rise"  # fact of a branch: H where it left its parent, minus H of the first completion


def _normalized_entropy(scores: Tensor, tokens: Tensor) -> Tensor:
    logprobs = scores.log_softmax(-1)  # [C, V]
    return -(logprobs.exp() * logprobs).sum(-1) / math.log(scores.shape[-1])


NORMALIZED_ENTROPY = PolicyStatistic(
    "normalized_entropy", lambda output: output.over_logits(_normalized_entropy)
)  # entropy; 1 for a uniform distribution


@dataclass(frozen=True)
class _Path:
    """A rollout and the entropy at the beginning of each of its completions."""

    rollout: Rollout
    entropies: tuple[float, ...]  # of each completion; 0 where it is a prefix
    first: float  # entropy of the first completion, its own or its ancestor's

    def rise(self, turn: int) -> float:
        return self.entropies[turn] - self.first

    def tokens_before(self, turn: int) -> int:
        return sum(len(each.tokens) for each in self.rollout.turns[:turn])


@dataclass(frozen=True)
class ToolForks(Strategy):
    """Strategy that plays `whole` starts from the prompt; each other start may branch off before a later completion."""

    whole: int = 8  # rollouts from the prompt
    probability: float = 0.5  # of branching where entropy is as at the first completion
    weight: float = 0.2  # of the rise in entropy
    tokens: int = 20  # of each completion, over which entropy is summed

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

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
        while left and any(len(path.entropies) > turn for path in paths):
            forking = [path for path in paths if len(path.entropies) > turn and self._forks(path.rise(turn), random)]
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
        """The rollouts that may branch: those with tokens that the environment did not fail."""
        open_ = [(rollout, first) for rollout, first in rollouts if rollout.is_scored and rollout.num_tokens]
        looks = await play.look([rollout for rollout, _ in open_], frozenset({NORMALIZED_ENTROPY})) if open_ else []
        found = []
        for (rollout, first), look in zip(open_, looks, strict=True):
            ends = np.cumsum([len(turn.tokens) for turn in rollout.turns])[:-1]
            completions = np.split(look[NORMALIZED_ENTROPY.name].astype(np.float64), ends)
            entropies = tuple(float(completion[: self.tokens].sum()) for completion in completions)
            found.append(_Path(rollout, entropies, entropies[0] if first is None else first))
        return found


async def _fork(path: _Path, turn: int, start: Start, play: Player) -> Rollout:
    branch = await branched(branch_of(path.rollout, path.tokens_before(turn), start), play)
    branch.facts[RISE] = path.rise(turn)
    return branch


_CALLS = 5  # of tools; one more completion may follow


def arpo_agentic(
    setting: Setting = Setting(env="keyvalue:4", group_size=16),
    probability: float = 0.5,  # of branching where entropy is as at the first completion
    weight: float = 0.2,  # of the rise in entropy
    tokens: int = 20,  # of each completion, over which entropy is summed
    rule: str = "sum",  # advantage of shared tokens: sum (soft) or mean (hard)
    minibatches: int = 4,  # optimizer steps per batch
) -> Run:
    """group_size rollouts, up to half of them branched off from the others."""
    return setting.run(
        "arpo_agentic",
        AlongTree(GroupStandard(), rule),
        (Clip(),),
        agent=Chat(_CALLS + 1),
        strategy=ToolForks(max(setting.group_size // 2, 1), probability, weight, tokens),
        minibatches=minibatches,
    )
