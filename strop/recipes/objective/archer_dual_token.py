"""Loose bounds for undecided tokens, tight ones and a leash for decided ones (Archer).

Title: Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR
Paper: arXiv 2507.15778 (2025)
Claim: Better than earlier RLVR methods on mathematics and code.
Reading: Two minibatches and three epochs per draw, as released. The leash is averaged over the low tokens of the
    attempt; the release divides by those of the step.
Acts: clipped_share > 0 and high_share > 0 and reference_kl != 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.dual_token import DualToken


def archer_dual_token(
    setting: Setting = Setting(),
    quantile: float = 0.8,  # of entropy, above which a token is undecided
    kl: float = 0.001,  # weight of the penalty on decided tokens
) -> Run:
    """GRPO's advantages with dual-token constraints; six optimizer steps per draw."""
    losses = (DualToken(quantile, kl=kl),)
    return setting.run("archer_dual_token", GroupStandard(), losses, minibatches=2, epochs=3)
