"""GRPO with a soft gate in place of the clip: tokens fade out of the gradient as the policy moves.

Title: Soft Adaptive Policy Optimization
Paper: arXiv 2511.20347 (2025)
Claim: Steadier training and a higher pass@1 than GRPO and GSPO at an equal budget of training.
Reading: Tokens are averaged by rollout, and a batch is trained in four minibatches.
Acts: gate < 1
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.sapo import Sapo
from strop.training.reductions.sequence_mean import SequenceMean


def sapo_soft(
    setting: Setting = Setting(),
    rising: float = 1.0,  # how quickly tokens that should become likelier fade
    falling: float = 1.05,  # the same for those that should become less likely
) -> Run:
    """Tokens fade out of the gradient as they move away from the policy that sampled them."""
    losses = (Sapo(rising, falling),)
    return setting.run("sapo_soft", GroupStandard(), losses, reduction=SequenceMean(), minibatches=4)
