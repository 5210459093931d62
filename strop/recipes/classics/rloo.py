"""RLOO: REINFORCE with a leave-one-out baseline; no critic.

Title: Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs
Paper: arXiv 2402.14740 (2024)
Claim: REINFORCE with a leave-one-out baseline is better than PPO and DPO at lower cost.
Left out: The KL inside the reward.
Acts: advantage > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import LeaveOneOut
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import SequenceMean


def rloo(setting: Setting = Setting()) -> Run:
    """Leave-one-out baseline and the plain policy gradient."""
    return setting.run("rloo", LeaveOneOut(), (Reinforce(),), reduction=SequenceMean())
