"""DivPO: DPO on the rarest good rollout against the most common bad one, for diversity.

Title: Diverse Preference Optimization
Paper: arXiv 2501.18101 (2025)
Claim: 45.6 % more diverse persona attributes and 74.6 % more diverse stories at equal quality.
Reading: Online. Rare means a low mean log-probability per token at sampling time.
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
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from strop.types import GateResult, Group, Rollout


@dataclass(frozen=True)
class DiversePair(Gate):
    """Gate that keeps [chosen, rejected]: the least likely good rollout and the most likely bad one.

    Good is a reward within `share` of the group's reward range from the best, bad within it from the worst. Likelihood
    is the mean log-probability per token at sampling time. Ties go to the first rollout; groups without contrast are
    dropped. With share 0 the pair is one of the best against one of the worst.
    """

    share: float = 0.1  # share of the group's reward range that counts as good, and as bad

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 <= self.share < 0.5:
            raise ConfigurationError(
                f"DiversePair needs 0 <= share < 0.5, so that good and bad do not overlap, got {self.share}"
            )

    def __call__(self, group: Group) -> GateResult:
        rewards = [rollout.reward for rollout in group.scored]
        if not rewards or min(rewards) == max(rewards):
            return GateResult(None, f"all rewards are {rewards[0]:g}" if rewards else "no rollout counts")
        band = self.share * (max(rewards) - min(rewards))
        chosen = max((a for a in group.scored if a.reward >= max(rewards) - band), key=surprisal)
        rejected = min((a for a in group.scored if a.reward <= min(rewards) + band), key=surprisal)
        return GateResult(
            replace(group, rollouts=[chosen, rejected]), "kept the rarest good and the most common bad rollout"
        )


def surprisal(rollout: Rollout) -> float:
    """Negative mean log-probability per token at sampling time; 0 without tokens."""
    logprobs = [turn.logprobs for turn in rollout.turns if len(turn.logprobs)]
    return -float(np.concatenate(logprobs).mean()) if logprobs else 0.0


def divpo(
    setting: Setting = Setting(),
    share: float = 0.1,  # share of the group's reward range that counts as good, and as bad
    beta: float = 0.1,  # scale of the implicit reward log(policy / reference)
) -> Run:
    """DPO on the rarest good rollout and the most common bad one."""
    return setting.run("divpo", Constant(), (Dpo(beta),), gates=(DiversePair(share),), reduction=SequenceMean())
