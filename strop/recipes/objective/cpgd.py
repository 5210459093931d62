"""A policy gradient that stops at a clipped log-ratio, and a drift back to the old policy.

Title: CPGD: Toward Stable Rule-based Reinforcement Learning for Language Models
Paper: arXiv 2505.12504 (2025)
Claim: It does not collapse where GRPO and RLOO do, and is better on multimodal benchmarks.
Reading: The drift's value means nothing; its gradient is that of the KL to the old policy, capped. Tokens are averaged
    by task, as in the paper (a release has the mean over all tokens). Optimizer steps per draw were not found: four.
Left out: Task weights other than 1.
Acts: clipped_share > 0 and kl > 0.001
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.cpgd import Cpgd
from strop.training.reductions.group_wise import GroupWise


def cpgd(
    setting: Setting = Setting(),
    clip: float = 0.2,  # bound of the log-ratio is that of 1 ± clip
    drift: float = 0.001,  # weight of the pull back to the old policy
) -> Run:
    """Rewards minus the group's mean; no ratio in front of the gradient."""
    return setting.run("cpgd", GroupMean(), (Cpgd(clip, drift),), reduction=GroupWise(), minibatches=4)
