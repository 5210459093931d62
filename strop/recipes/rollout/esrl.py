"""ESRL: PPO on the least confident rollouts of each group; the most confident 30 % are left out.

Title: ESRL: Efficient Sampling-based Reinforcement Learning for Sequence Generation
Paper: arXiv 2308.02223 (2023)
Claim: Less time and memory for sampling at equal quality, in translation, summaries and RLHF.
Reading: The rule of the release, in its RLHF part: the 30 % most confident rollouts are left out; see the mechanism for
    the differences. Its other stage, sampling without a graph and one forward pass for the gradient, is what every
    trainer here does.
Left out: The paper's adaptation of the number of samples and the temperature to the policy's capability, whose formula
    was not found. The release's KL to the reference as part of the reward.
Acts: confidence_gap > 0
Break: share=0: no rollout is left out
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Gate
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic
from strop.types import GateResult, Group, Metrics, Rollout

# ESRL's dynamic sampling (2308.02223): the most confident rollouts of a group are left out of training.
#
# Readings: as released, u = 1 + mean of q * exp(q) over a rollout's tokens, which rises with confidence although the
# release calls it an entropy. q is the probability of the sampled token, not of the likeliest one, and the share is
# left out of each group, not of a whole batch.

KEPT, LEFT = "confidence", "confidence_left"


@dataclass(frozen=True)
class LeastConfident(Gate):
    """Gate that leaves out a share of a group's rollouts, rounded up: those with the largest u; of equal ones the
    last.
    """

    share: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ConfigurationError(f"LeastConfident needs a share from 0 to below 1, got {self.share}")

    def __call__(self, group: Group) -> GateResult:
        rollouts = group.scored
        certain = [confidence(rollout) for rollout in rollouts]
        out = math.ceil(self.share * len(rollouts) - 1e-9)
        order = sorted(range(len(rollouts)), key=lambda place: certain[place])
        kept, left = sorted(order[: len(rollouts) - out]), order[len(rollouts) - out :]
        if not kept:
            return GateResult(
                None, f"of {len(rollouts)} scored rollouts {self.share:.0%} are left out, and none remains"
            )
        facts = {LEFT: float(np.mean([certain[place] for place in left or kept]))}
        chosen = [replace(rollouts[p], facts=rollouts[p].facts | facts | {KEPT: certain[p]}) for p in kept]
        return GateResult(
            replace(group, rollouts=chosen), f"left out the {out} most confident of {len(rollouts)} rollouts"
        )

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: mean u of the rollouts left out minus that of the rollouts kept."""
        facts = [t.facts for group in groups for t in group.rollouts if KEPT in t.facts]
        return {"confidence_gap": float(np.mean([f[LEFT] - f[KEPT] for f in facts])) if facts else 0.0}


def confidence(rollout: Rollout) -> float:
    """1 + mean(q * exp(q)): 1 + e where every token had probability 1; 1 for a rollout without tokens."""
    probabilities = np.exp(np.concatenate([np.zeros(0), *(turn.logprobs for turn in rollout.turns)]).astype(np.float64))
    return 1 + float(np.mean(probabilities * np.exp(probabilities))) if len(probabilities) else 1.0


def esrl(
    setting: Setting = Setting(),
    share: float = 0.3,  # of each group that is left out
) -> Run:
    """PPO with a critic and one optimizer step per batch."""
    return setting.run(
        "esrl",
        Gae(),
        (Clip(0.2, 0.2),),
        gates=(LeastConfident(share),),
        values=Critic(device=setting.device),
    )
