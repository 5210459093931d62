"""Right and wrong attempts told apart by the policy's own log-ratios.

Title: Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR
Paper: arXiv 2509.02522 (2025)
Claim: 59.78 % pass@256 on AIME 2025: 13.32 points above PPO, 14.36 above GRPO.
Reading: Log-ratios are to the policy that sampled, not to the base model; four optimizer steps per draw, as released.
    Groups without contrast are kept: they act once the policy has moved.
Acts: classified_right > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pacs import Pacs
from strop.training.reductions.sequence_mean import SequenceMean


def pacs(
    setting: Setting = Setting(),
    beta: float = 1.0,  # scale of the log-ratios that tell right from wrong
) -> Run:
    """Cross-entropy of leave-one-out scores; no advantage."""
    return setting.run("pacs", Constant(), (Pacs(beta),), reduction=SequenceMean(), minibatches=4)
