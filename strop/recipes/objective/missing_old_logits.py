"""A symmetric mask for the engines' mismatch, PPO's clip for staleness, told apart by old logprobs.

Title: Missing Old Logits in Asynchronous Agentic RL: Semantic Mismatch and Repair Methods for Off-Policy Correction
Paper: arXiv 2605.12070 (2026)
Claim: Asynchronous training is steadier where mismatch and staleness are corrected apart.
Reading: `old` is what stands between behaviour and policy: old (exact, from kept weights) or averaged (a proxy
    without them). The paper's limit was not found; 2 is the plainest. Where engine and trainer
    agree to rounding, as here on a CPU, no token's mismatch reaches it and only the clip acts.
Left out: The two other exact repairs: a second model beside the trainer, and scoring before each publish.
Acts: staleness > 0.001 and clipped_share > 0
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Correction
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.arithmetic.ratios import check_policy, log_weights, needed
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.requirements import Need
from strop.training.trainers.torch import TorchTrainer

# Mismatch apart from staleness ("Missing Old Logits in Asynchronous Agentic RL", 2605.12070).
#
# policy / behaviour = r_d * r_s. The mismatch r_d = old / behaviour, same weights in two engines, has no right
# direction: its band is symmetric and it is a weight, so it is a correction. The staleness r_s = policy / old is what
# PPO's clip is for, by the sign of the advantage: it belongs in a loss anchored at the same target, Clip(anchor=...).


@dataclass(frozen=True)
class Separated(Correction):
    """Weigh a token by r_d * [1 / limit <= r_d <= limit], r_d = target / behaviour, detached.

    The target is `old`, the exact weights behind each token, or its proxy `averaged`, a running average of weights.
    The paper's limit is not known; 2 is the plainest.
    """

    limit: float = 2.0  # mismatch beyond limit or 1 / limit masks a token
    target: str = "old"  # the policy that tokens are weighed to

    def __post_init__(self) -> None:
        check_policy(self.target, ("old", "averaged"), self)
        if self.limit < 1:
            raise ConfigurationError(f"Separated needs limit >= 1, or its band is empty, got {self.limit}")

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        mismatch = log_weights(self.target, batch, logprobs).exp()  # [T]
        kept = (mismatch >= 1 / self.limit) & (mismatch <= self.limit)
        return mismatch.where(kept, mismatch.new_zeros(()))


def missing_old_logits(
    setting: Setting = Setting(lag=4),
    old: str = "old",  # old (exact, from kept weights) or averaged (a proxy)
    limit: float = 2.0,  # mismatch beyond limit or 1 / limit masks a token
) -> Run:
    """policy / behaviour = mismatch * staleness, each with a rule of its own."""
    snapshots, window = (setting.lag + 1, 0) if old == "old" else (0, max(setting.lag, 1))
    return setting.run(
        "missing_old_logits",
        GroupStandard(),
        (Clip(anchor=old),),
        correction=Separated(limit, old),
        trainer=TorchTrainer(
            learning_rate=setting.learning_rate, device=setting.device, snapshots=snapshots, average_window=window
        ),
    )
