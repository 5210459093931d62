"""SAPO: GRPO with a soft gate on the token ratio in place of hard clipping.

Title: Soft Adaptive Policy Optimization
Paper: arXiv 2511.20347 (2025)
Claim: Steadier training and a higher pass@1 than GRPO and GSPO at an equal training budget.
Reading: Tokens are averaged per rollout, and a batch is trained in four minibatches.
Acts: gate < 1
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.sapo import Sapo
from strop.training.reductions.means import SequenceMean


def sapo_soft(
    setting: Setting = Setting(),
    rising: float = 1.0,  # gate temperature of tokens with a positive advantage; higher: the gradient fades sooner
    falling: float = 1.05,  # gate temperature of tokens with a negative advantage
) -> Run:
    """A token's gradient fades as its ratio to the sampling policy moves away from 1."""
    losses = (Sapo(rising, falling),)
    return setting.run("sapo_soft", GroupStandard(), losses, reduction=SequenceMean(), minibatches=4)
