"""PPO over whole conversations, on the quarter of tasks whose rollouts ended most unevenly (StarPO-S).

Title: RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn Reinforcement Learning
Paper: arXiv 2504.20073 (2025)
Claim: Training over several turns, which otherwise collapses into repetition, stays stable by choosing attempts, a
    critic and a wider upper clip.
Reading: The release: a quarter of the groups by the std of what rollouts were paid, a critic without discounts, no KL,
    clip 0.2 and 0.28, an entropy bonus of 0.001, and 0.1 off for each completion that cannot be read as an action. What
    is
    chosen makes one optimizer step; what is left out keeps its place in the mean over tokens, with no advantage, and in
    the entropy bonus, which so weighs about four times as much beside advantage as in the release. The metric spread is
    that before the choice, spread_gained how much larger it is after.
Left out: Advantage on two levels, of turns and of their tokens, which the release has as an option.
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

# A price for every completion that cannot be read as an action (RAGEN, 2504.20073).


@dataclass(frozen=True)
class Unreadable(Reward):
    """Minus `price` for each completion that is neither one well-formed call nor an answer."""

    price: float = 0.1  # of one completion

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0:
            raise ConfigurationError(f"Unreadable needs a price of 0 or more, got {self.price}")

    def __call__(self, group: Group) -> list[float]:
        counts = (sum(not action_in(turn.message).is_formed for turn in rollout.turns) for rollout in group.rollouts)
        return [-self.price * count for count in counts]


# RAGEN's filter (2504.20073): of a batch only the groups whose rollouts ended most unevenly are learned from.


@dataclass(frozen=True)
class WidestSpread(Advantage):
    """What `inner` gives to the `share` of groups with the largest spread of rewards, at least one; others get 0.

    The spread is the sample std of the rollouts that count, 0 where there is one; probability decides between equals,
    so that their order in a batch does not. What is left out teaches a critic nothing either: its return is what was
    expected.
    """

    inner: Advantage
    share: float = 0.25  # of the groups of a batch
    by_chance: bool = False  # any groups, for a control

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
        """Places in the batch, in its order."""
        scores = [0.0 if self.by_chance else spread(group) for group in groups]
        count = max(int(self.share * len(groups) + 1e-9), 1)
        return sorted(highest(scores, count, [group.number for group in groups]))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; where the spread falls and rewards do not rise, a policy repeats itself."""
        spreads = np.array([spread(group) for group in groups])
        gained = spreads[self._chosen(groups)].mean() - spreads.mean()
        return {"spread": float(spreads.mean()), "spread_gained": float(gained)}


def spread(group: Group) -> float:
    """Of what its rollouts were paid, before anything is taken off."""
    return float(group.rewards.std(ddof=1)) if len(group.scored) > 1 else 0.0


def ragen(
    setting: Setting = Setting(env="keyvalue:2+keyvalue:3", group_size=16),
    share: float = 0.25,  # of the groups of a batch
    by_chance: bool = False,  # any groups, for a control
    price: float = 0.1,  # of a completion that cannot be read
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
    entropy: float = 0.001,  # weight of the bonus
) -> Run:
    """A critic, a choice among groups, and loss on what the model wrote alone."""
    run = setting.run(
        "ragen",
        WidestSpread(Gae(trace=1.0), share, by_chance),
        (Clip(low, high), Entropy(entropy)),
        values=Critic(device=setting.device),
    )
    run.rewards = (*run.rewards, Unreadable(price))
    return run
