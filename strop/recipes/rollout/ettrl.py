"""ETTRL: test-time RL on trees that branch at high-entropy tokens; majority-vote reward, entropy-reshaped advantages.

Title: ETTRL: Balancing Exploration and Exploitation in LLM Test-Time Reinforcement Learning Via Entropy Mechanism
Paper: arXiv 2508.11356 (2025)
Claim: 68 % better Pass@1 on AIME 2024 for Llama3.1-8B than TTRL, with 60 % of its tokens.
Reading: No release was found. `group_size` counts the roots, of which the paper has 12; with two positions and two
    branches each has five leaves. All leaves vote and are compared as one group. Each leaf counts as if it were trained
    whole: tokens that several share get the sum of their advantages. Optimizer steps per batch are not known: one.
    Tasks are the environment's train tasks; their outcome is measured (`reward/outcome`) but not trained on.
Left out: The clipped advantage, the paper's alternative to the reshaped one.
Acts: share/branched > 0 and advantage_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.filter.rewards.majority_vote import Majority
from strop.generate.tree_search.branch import branch_of, branched
from strop.recipes.environment_specs import measured
from strop.recipes.setting import Setting
from strop.roles import Advantage, Player, Strategy
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.tree_lineage import lines
from strop.training.losses.clip import Clip
from strop.training.requirements import ENTROPY, PolicyStatistic
from strop.types import FloatArray, Group, Metrics, Rollout, Start

# ETTRL's tree of rollouts (2508.11356): whole rollouts, each continued anew from its most uncertain tokens.
#
# Reading: the token at a chosen position and all tokens after it are sampled again; those before it are the branch's
# prefix, so each token exists once. Entropies are the trainer's, under the current weights, at the sampling
# temperature.


@dataclass(frozen=True)
class EntropyForks(Strategy):
    """Strategy that plays each start as a root and samples `branches` rollouts from each of its `positions` tokens of
    highest entropy.

    M starts make up to M * (1 + positions * branches) rollouts. The fact `shared` of a branch is the share of its
    tokens that are its root's.
    """

    positions: int = 2  # of a rollout, from which others branch off
    branches: int = 2  # from each position

    def __post_init__(self) -> None:
        if self.positions < 1 or self.branches < 1:
            raise ConfigurationError(
                f"EntropyForks needs positions >= 1 and branches >= 1, got {self.positions} and {self.branches}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        roots = await together(play(start) for start in starts)
        whole = [root for root in roots if root.is_scored and root.num_tokens]
        looks = await play.look(whole, frozenset({ENTROPY})) if whole else []
        places = [
            (root, at) for root, look in zip(whole, looks, strict=True) for at in self._places(look[ENTROPY.name])
        ]
        forks = [branch_of(root, at, play.another()) for root, at in places for _ in range(self.branches)]
        return [*roots, *await together(branched(start, play) for start in forks)]

    def _places(self, entropy: FloatArray) -> list[int]:
        """Positions of the most uncertain tokens, in order; of equal ones the first."""
        highest: list[int] = np.argsort(-entropy, kind="stable")[: self.positions].tolist()
        return sorted(highest)


# ETTRL's reshaped advantage (2508.11356): rollouts of lower entropy than their siblings get a larger one.
#
# Reading: a rollout's entropy is the mean over all tokens of its completions, including those shared with its parents.
# The weight is at least 0: beyond twice the mean entropy it would flip the sign of the advantage.


@dataclass(frozen=True)
class EntropyReshaped(Advantage):
    """Advantage of `inner` times 1 + (mean - H) / mean: H is the rollout's entropy, mean the average of H over its
    siblings.
    """

    inner: Advantage

    min_group: ClassVar[int] = 2
    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({ENTROPY})

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            for rollout, weight in zip(group.scored, _weights(group.scored), strict=True):
                assert rollout.advantages is not None
                rollout.advantages = (rollout.advantages * weight).astype(np.float32)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: mean distance of the weights from 1."""
        distances = [abs(weight - 1) for group in groups for weight in _weights(group.scored)]
        return {"reshaped": float(np.mean(distances)) if distances else 0.0}


def _weights(rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
    """1 for a rollout without tokens, and for all where the mean entropy is 0: [G]."""
    known = {rollout.id: _entropy(rollout) for rollout in rollouts}
    paths = [[known[owner][:size] for owner, size in line.items()] for line in lines(rollouts).values()]
    means = np.array([np.concatenate(path).mean() if sum(map(len, path)) else np.nan for path in paths])  # [G]
    mean = float(np.nanmean(means)) if np.isfinite(means).any() else 0.0
    if not mean:
        return np.ones(len(rollouts))
    return np.where(np.isnan(means), 1.0, np.maximum(2 - means / mean, 0.0))


def _entropy(rollout: Rollout) -> NDArray[np.float64]:
    """Entropy of its own tokens: [N]."""
    if not rollout.num_tokens:
        return np.zeros(0)
    return ENTROPY.of(rollout).astype(np.float64)


def ettrl(
    setting: Setting = Setting(group_size=12),
    positions: int = 2,  # of a rollout, from which others branch off
    branches: int = 2,  # from each position
    rule: str = "sum",  # advantage of tokens that several rollouts share: sum or mean
) -> Run:
    """group_size roots; the majority answer counts as right."""
    run = setting.run(
        "ettrl",
        AlongTree(EntropyReshaped(GroupStandard()), rule),
        (Clip(),),
        strategy=EntropyForks(positions, branches),
    )
    run.rewards = (Majority(run.envs), measured(run.envs))
    return run
