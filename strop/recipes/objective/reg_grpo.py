"""Regress how the policy moved onto the advantages, held near the reference (DeepVideo-R1).

Title: DeepVideo-R1: Video Reinforcement Fine-Tuning via Difficulty-aware Regressive GRPO
Paper: arXiv 2506.07464 (2025)
Claim: Better reasoning about videos than GRPO's, without clips.
Reading: The spread of the log-ratios is held above a floor, without a gradient below it, because it is 0 at first.
    The paper's weight of the KL was not found; GRPO's stands in.
Left out: Difficulty-aware augmentation, and videos.
Acts: moved > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.kl import Kl
from strop.training.losses.reg_grpo import RegGrpo
from strop.training.reductions.sequence_mean import SequenceMean


def reg_grpo(
    setting: Setting = Setting(),
    floor: float = 0.1,  # least spread of log-ratios that is divided by
    kl: float = 0.04,  # weight of the penalty to the reference
) -> Run:
    """Only the KL term bounds how far a step goes; the paper's weight for it was not found, GRPO's stands in."""
    losses = (RegGrpo(floor), Kl("k3", kl))
    return setting.run("reg_grpo", GroupStandard(), losses, reduction=SequenceMean(), minibatches=2)
