"""DR-PO: PPO whose rollouts start from random states of demonstrations (dataset resets).

Title: Dataset Reset Policy Optimization for RLHF
Paper: arXiv 2404.08495 (2024)
Claim: Better win rates than PPO and DPO on TL;DR summaries and Anthropic's HH data, under GPT-4's judgement.
Reading: Demonstrations of the environment stand in for preferred completions, and its outcome for the reward model;
    every rollout is reset, as released. Advantage, critic and KL penalty cover the tokens that the policy sampled; the
    release's value loss also covers prefix tokens. A k2 loss to the reference replaces the KL term in the reward. The
    weight of the penalty, epochs and minibatches are not in the sources read: 0.05, one and two.
Left out: Fitting the reward model to preferences first.
Acts: share/branched > 0 and fact/shared > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.tree_search.branch import branch_of, branched
from strop.recipes.setting import Setting
from strop.roles import Agent, Player, Strategy
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic
from strop.types import Group, Rollout, Start

# DR-PO's resets (2404.08495): rollouts start from a random state of a demonstration.
#
# The prefix is a state, not an action: the policy reads it, and it is neither trained nor given an advantage nor
# counted. The demonstration stands in for the preferred completion of a data set.


@dataclass(frozen=True)
class ResetToDemonstration(Strategy):
    """Strategy that gives a rollout, with probability `share`, the first k of a demonstration's L tokens as prefix, 0 <
    k < L.

    `expert` plays the demonstration, which is not returned. Where it has fewer than 2 tokens or the environment fails,
    nothing is reset.
    """

    expert: Agent
    share: float = 1.0  # of rollouts that are reset; 0 is PPO

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"ResetToDemonstration needs 0 <= share <= 1, got {self.share}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        rngs = [np.random.default_rng(start.key) for start in starts]
        is_reset = [rng.random() < self.share for rng in rngs]
        if not any(is_reset):
            return await together(play(start) for start in starts)
        shown = await play(play.another(), self.expert)
        if not shown.is_scored or shown.num_tokens < 2:
            return await together(play(start) for start in starts)
        cuts = [int(rng.integers(1, shown.num_tokens)) for rng in rngs]
        chosen = [
            branch_of(shown, at, start) if reset else start
            for start, at, reset in zip(starts, cuts, is_reset, strict=True)
        ]
        return await together(branched(start, play) for start in chosen)


def dr_po(
    setting: Setting = Setting(env="countdown:4"),
    share: float = 1.0,  # of rollouts that are reset; 0 is PPO
    kl: float = 0.05,  # weight of the KL penalty to the reference
) -> Run:
    """Each rollout has a prefix of a demonstration, of random length."""
    return setting.run(
        "dr_po",
        Gae(trace=0.95),
        (Clip(0.2, 0.2), Kl("k2", kl)),
        values=Critic(device=setting.device),
        strategy=ResetToDemonstration(Demonstrate(least=1.0), share),
        minibatches=2,
    )
