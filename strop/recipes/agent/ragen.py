"""PPO over whole conversations, on the quarter of tasks whose attempts ended most unevenly (StarPO-S).

Title: RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn Reinforcement Learning
Paper: arXiv 2504.20073 (2025)
Claim: Training over several turns, which otherwise collapses into repetition, stays stable by choosing attempts, a
    critic and a wider upper clip.
Reading: The release: a quarter of the groups by the std of what attempts were paid, a critic without discounts, no KL,
    clip 0.2 and 0.28, an entropy bonus of 0.001, and 0.1 off for each reply that cannot be read as an action. What is
    chosen makes one optimizer step; what is left out keeps its place in the mean over tokens, with no credit, and in
    the entropy bonus, which so weighs about four times as much beside credit as in the release. The figure spread is
    that before the choice, spread_gained how much larger it is after.
Left out: Credit on two levels, of turns and of their tokens, which the release has as an option.
Acts: spread > 0 and spread_gained > 0 and value_grad_norm > 0
"""

from __future__ import annotations

from strop.filter.rewards.conversation.unreadable import Unreadable
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.advantages.widest_spread import WidestSpread
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.values.critic import Critic


def ragen(
    setting: Setting = Setting(world="keyvalue:2+keyvalue:3", group_size=16),
    share: float = 0.25,  # of the groups of a draw
    by_chance: bool = False,  # any groups, for a control
    price: float = 0.1,  # of a reply that cannot be read
    low: float = 0.2,  # the lower bound of a ratio is 1 - low
    high: float = 0.28,  # the upper bound of a ratio is 1 + high
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
