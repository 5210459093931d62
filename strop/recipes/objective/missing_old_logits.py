"""Separate off-policy corrections: a mask for engine mismatch, PPO clipping for staleness, split by old logprobs.

Title: Missing Old Logits in Asynchronous Agentic RL: Semantic Mismatch and Repair Methods for Off-Policy Correction
Paper: arXiv 2605.12070 (2026)
Claim: Asynchronous training is steadier where mismatch and staleness are corrected separately.
Reading: `old` selects the policy between behaviour and current policy: `old` is exact, from kept weights; `averaged` is
    a proxy without them. The paper's limit was not found; 2 is our choice. Where engine and trainer agree up to
    rounding, as here on a CPU, no token's mismatch reaches the limit and only clipping acts.
Left out: The two other exact repairs: a second model in the trainer, and scoring before each weight update of the
    engines.
Acts: staleness > 0.001 and clipped_share > 0
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Correction
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.ratios import check_policy, log_weights, needed
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.requirements import Need
from strop.training.trainers.torch import TorchTrainer

# policy / behaviour = r_d * r_s (2605.12070). The mismatch r_d = old / behaviour compares the same weights in trainer
# and engine. It has no preferred direction, so its band is symmetric and it is a correction. The staleness
# r_s = policy / old is clipped by the sign of the advantage, in a loss with the same anchor: Clip(anchor=...).


@dataclass(frozen=True)
class MismatchMask(Correction):
    """Correction with token weight r_d * [1 / limit <= r_d <= limit], r_d = target / behaviour, detached.

    The target is `old`, the exact weights that sampled each token, or its proxy `averaged`, a running average of
    weights.
    """

    limit: float = 2.0  # tokens whose mismatch is outside [1 / limit, limit] are masked
    target: str = "old"  # numerator policy of the weight: old or averaged

    def __post_init__(self) -> None:
        check_policy(self.target, ("old", "averaged"), self)
        if self.limit < 1:
            raise ConfigurationError(f"MismatchMask needs limit >= 1, so that its band is not empty, got {self.limit}")

    @property
    def needs(self) -> frozenset[Need]:
        return needed(self.target)

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        mismatch = log_weights(self.target, batch, logprobs).exp()  # [T]
        kept = (mismatch >= 1 / self.limit) & (mismatch <= self.limit)
        return mismatch.where(kept, mismatch.new_zeros(()))


def missing_old_logits(
    setting: Setting = Setting(lag=4),
    old: str = "old",  # old (exact, from kept weights) or averaged (proxy)
    limit: float = 2.0,  # tokens whose mismatch is outside [1 / limit, limit] are masked
) -> Run:
    """GRPO with policy / behaviour = mismatch * staleness; the mismatch is masked, the staleness clipped."""
    snapshots, window = (setting.lag + 1, 0) if old == "old" else (0, max(setting.lag, 1))
    return setting.run(
        "missing_old_logits",
        GroupStandard(),
        (Clip(anchor=old),),
        correction=MismatchMask(limit, old),
        trainer=TorchTrainer(
            learning_rate=setting.learning_rate, device=setting.device, snapshots=snapshots, average_window=window
        ),
    )
