"""Supervised learning on right and wrong attempts alike.

Title: Bridging Supervised Learning and Reinforcement Learning in Math Reasoning
Paper: arXiv 2505.18116 (2025)
Claim: Better than fine-tuning on right attempts, and level with GRPO and DAPO at 7B and 32B.
Reading: The value of a ratio is held where its gradient is kept, and tokens are summed over a constant, as released.
    The release makes 16 optimizer steps per draw of 512 tasks; four fit a draw of eight groups, two groups each.
    negative_weight 0 imitates right attempts only.
Acts: held_share > 0 and dropped_groups > 0
"""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.nft import Nft
from strop.training.reductions.constant_length import ConstantLength


def nft(
    setting: Setting = Setting(),
    task_weight: str = "linear",  # linear (Dr. GRPO's where on-policy), root (GRPO's) or none
    negative_weight: float = 1.0,  # of wrong attempts; 0 imitates right ones only
) -> Run:
    """No advantage: the group's pass rate is in the loss; negative_weight 0 imitates right attempts only."""
    return setting.run(
        "nft",
        Constant(),
        (Nft(task_weight=task_weight, negative_weight=negative_weight),),
        gates=(ZeroVariance(),),
        reduction=ConstantLength(setting.max_tokens),
        minibatches=4,
    )
