"""RAGEN (StarPO-S): multi-turn PPO with a critic and clip-higher, on the quarter of groups with the largest reward std.

Title: RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn Reinforcement Learning
Paper: arXiv 2504.20073 (2025)
Claim: Training over several turns, which otherwise collapses into repetition, stays stable by selecting rollouts,
    a critic and a wider upper clip.
Reading: As released: a quarter of the groups by the std of their rewards, a critic without discounts, no KL penalty,
    clip ranges 0.2 and 0.28, an entropy bonus of 0.001, and a penalty of 0.1 for each completion that does not parse
    as an action. The selected groups make one optimizer step. Groups that are not selected stay in the token mean with
    advantage 0, and in the entropy bonus, which is therefore about four times as large relative to the advantages as
    in the release. The metric spread is the mean std before the selection, spread_gained its increase by it.
Left out: Bi-level advantages, of turns and of their tokens, which the release has as an option.
Acts: spread > 0 and spread_gained > 0 and value_grad_norm > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.control.seeded_choice import highest
from strop.environments.format.actions import action_in
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Advantage, Reward
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.values.critic import Critic
from strop.types import Group, Metrics

# RAGEN's format penalty (2504.20073).


@dataclass(frozen=True)
class Unreadable(Reward):
    """Minus `price` for each completion that is neither one well-formed call nor an answer."""

    price: float = 0.1  # penalty of one completion

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ConfigurationError(f"Unreadable needs a price of 0 or more, got {self.price}")

    def __call__(self, group: Group) -> list[float]:
        counts = (sum(not action_in(turn.message).is_formed for turn in rollout.turns) for rollout in group.rollouts)
        return [-self.price * count for count in counts]


# RAGEN's filter (2504.20073): only the groups of a batch with the largest reward std are trained on.


@dataclass(frozen=True)
class WidestSpread(Advantage):
    """Advantages of `inner` for the `share` of groups with the largest reward std, at least one; others get 0.

    The std is the sample std of the scored rollouts, 0 for a single one. Ties are broken at random, not by the order in
    the batch. The critic's targets for the other groups are its own values, so they have no gradient there either.
    """

    inner: Advantage
    share: float = 0.25  # share of a training batch's groups that are trained on
    by_chance: bool = False  # select groups at random (control)

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"WidestSpread needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, groups: Sequence[Group]) -> None:
        chosen = self._chosen(groups)
        self.inner([groups[place] for place in chosen])
        for rollout in (a for place, group in enumerate(groups) if place not in chosen for a in group.scored):
            rollout.set_advantage(0.0)
            rollout.returns = rollout.values

    def _chosen(self, groups: Sequence[Group]) -> list[int]:
        """Indices of the selected groups, in the order of the batch."""
        scores = [0.0 if self.by_chance else spread(group) for group in groups]
        count = max(int(self.share * len(groups) + 1e-9), 1)
        return sorted(highest(scores, count, [group.number for group in groups]))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only; a falling spread without rising rewards is a sign of collapse into repetition."""
        spreads = np.array([spread(group) for group in groups])
        gained = spreads[self._chosen(groups)].mean() - spreads.mean()
        return {"spread": float(spreads.mean()), "spread_gained": float(gained)}


def spread(group: Group) -> float:
    """The sample std of the rewards of a group, before format penalties; 0 for fewer than 2 rollouts."""
    return float(group.rewards.std(ddof=1)) if len(group.scored) > 1 else 0.0


def ragen(
    setting: Setting = Setting(env="keyvalue:2+keyvalue:3", group_size=16),
    share: float = 0.25,  # share of a training batch's groups that are trained on
    by_chance: bool = False,  # select groups at random (control)
    price: float = 0.1,  # penalty for each completion that does not parse as an action
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """PPO on the selected groups, with loss on the sampled tokens only."""
    run = setting.run(
        "ragen",
        WidestSpread(Gae(trace=1.0), share, by_chance),
        (Clip(low, high), Entropy(entropy)),
        values=Critic(device=setting.device),
    )
    run.rewards = (*run.rewards, Unreadable(price))
    return run
