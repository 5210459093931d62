"""Prefer what is right and rare to what is wrong and common.

Title: Diverse Preference Optimization
Paper: arXiv 2501.18101 (2025)
Claim: 45.6 % more diverse persona attributes and 74.6 % more diverse stories at equal quality.
Reading: Online; rare is a low mean log-probability per token, as sampled.
Left out: Diversity by word frequencies or by a judge.
Acts: kept_share < 1 and margin != 0
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Gate
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import GateResult, Group, Rollout

# DivPO's pair (2501.18101): of the good rollouts the most unusual one, of the bad ones the most usual.


@dataclass(frozen=True)
class DiversePair(Gate):
    """[chosen, rejected]: good is a reward within `share` of the group's range from the best, bad from the worst.

    Unusual is a low mean log-probability per token, as it was sampled. The first of equals counts; groups without
    contrast are dropped. share 0 is the best against the worst.
    """

    share: float = 0.1  # of the group's range of rewards that counts as good, and as bad

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 <= self.share < 0.5:
            raise ConfigurationError(f"DiversePair needs 0 <= share < 0.5, or good meets bad; got {self.share}")

    def __call__(self, group: Group) -> GateResult:
        rewards = [rollout.reward for rollout in group.scored]
        if not rewards or min(rewards) == max(rewards):
            return GateResult(None, f"all rewards are {rewards[0]:g}" if rewards else "no rollout counts")
        band = self.share * (max(rewards) - min(rewards))
        chosen = max((a for a in group.scored if a.reward >= max(rewards) - band), key=unusual)
        rejected = min((a for a in group.scored if a.reward <= min(rewards) + band), key=unusual)
        return GateResult(replace(group, rollouts=[chosen, rejected]), "kept the rarest good and the commonest bad")


def unusual(rollout: Rollout) -> float:
    """Minus the mean log-probability per token; 0 where nothing was written."""
    written = [turn.logprobs for turn in rollout.turns if len(turn.logprobs)]
    return -float(np.concatenate(written).mean()) if written else 0.0


def divpo(
    setting: Setting = Setting(),
    share: float = 0.1,  # of the group's range of rewards that counts as good, and as bad
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """DPO on the most unusual good rollout and the most usual bad one."""
    return setting.run("divpo", Constant(), (Dpo(beta),), gates=(DiversePair(share),), reduction=SequenceMean())
