"""REINFORCE with each rollout's siblings as its baseline: unbiased when on-policy.

Title: Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs
Paper: arXiv 2402.14740 (2024)
Claim: REINFORCE with a leave-one-out baseline is better than PPO and DPO for less computation.
Left out: The KL inside the reward.
Acts: advantage > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.leave_one_out import LeaveOneOut
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.sequence_mean import SequenceMean


def rloo(setting: Setting = Setting()) -> Run:
    """Leave-one-out baseline, plain policy gradient: unbiased when on-policy."""
    return setting.run("rloo", LeaveOneOut(), (Reinforce(),), reduction=SequenceMean())
