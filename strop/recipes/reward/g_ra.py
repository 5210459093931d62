"""Turns that a tool carried out are paid only in rollouts that succeed in the end.

Title: Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards
Paper: arXiv 2508.10548 (2025)
Claim: Where step rewards are added up as they are, outcomes fall; gated, completion of software tasks goes from 47.6 to
    93.8 %.
Reading: No release was found; a note and a re-implementation agree. The gate is 0, what a rollout without success is
    paid, and it is passed by more than that; a closed one shuts out penalties, too. Rollouts are compared by the whole
    return. The bonus of a turn is ours, as is GRPO with one optimizer step per batch.
Left out: Containers with repositories, and rewards for the form of a patch: a store behind tool calls stands for them.
Acts: open_share > 0 and reward/gated > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_scores
from strop.filter.rewards.valid_action_bonus import CarriedOut
from strop.filter.scoring import is_inline
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics

# Step rewards that count only where the long-term one passes a gate (G-RA, 2508.10548).
#
# Added up as they are, they are farmed while the outcome falls. Read plainly: a closed gate shuts out penalties like
# bonuses, an outcome at its gate closes it, and one that nobody knows (NaN) closes it and fails the rollout.


@dataclass(frozen=True)
class Gated(Reward):
    """The sum of all levels above which no gate is closed: each level but the first has one, passed by more than it."""

    levels: tuple[Reward, ...]  # by priority, the outcome last: it always counts
    gates: tuple[float, ...] = (0.0,)  # of the second level, of the third, ...
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # if its levels are
    name: ClassVar[str] = "gated"

    def __post_init__(self) -> None:
        if len(self.levels) < 2 or len(self.gates) != len(self.levels) - 1:
            raise ConfigurationError(
                f"Gated needs at least 2 levels and a gate for each but the first, got {len(self.levels)} levels and "
                f"{len(self.gates)} gates"
            )

    def __call__(self, group: Group) -> list[float]:
        return [self._sum(scores) for scores in self._scores(group)]

    def _scores(self, group: Group) -> list[tuple[float, ...]]:
        """Of each rollout, by level."""
        return list(zip(*(plain_scores(self, level, group) for level in self.levels), strict=True))

    def _first(self, scores: Sequence[float]) -> int:
        """The lowest level that counts."""
        first = len(scores) - 1
        while first > 0 and scores[first] > self.gates[first - 1]:
            first -= 1
        return first

    def _sum(self, scores: Sequence[float]) -> float:
        counted = list(zip(self.levels, scores, strict=True))[self._first(scores) :]
        return sum(level.weight * score for level, score in counted)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The share of rollouts whose lowest level counts, where levels may be asked here; nothing is remembered."""
        if not is_inline(self):
            return {}
        told = [scores for group in groups for scores in self._scores(replace(group, rollouts=group.scored))]
        return {"open_share": sum(self._first(scores) == 0 for scores in told) / max(len(told), 1)}


def g_ra(
    setting: Setting = Setting(env="keyvalue:2"),
    bonus: float = 0.1,  # of a turn that a tool carried out
    gate: float = 0.0,  # that the outcome must pass before turns count
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """The outcome is always paid; what it is without turns is logged beside it and weighs nothing."""
    run = setting.run("g_ra", GroupStandard(), (Clip(clip, clip),))
    run.rewards = (Gated((CarriedOut(bonus), run.rewards[0]), (gate,)), measured(run.envs))
    return run
