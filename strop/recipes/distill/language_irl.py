"""Imitation by inverse soft Q-learning: likelihood, with the reward that the logits imply held small.

Title: Imitating Language via Scalable Inverse Reinforcement Learning
Paper: arXiv 2409.01369 (2024)
Claim: As good as plain imitation on its tasks and more diverse, from fixed data.
Reading: The penalty is set per task in the paper; 0.1 is a re-implementation's.
Left out: The small online mixture.
Acts: implied_reward != 0
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.imitation.inverse_soft_q import InverseSoftQ


def language_irl(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    penalty: float = 0.1,  # on the reward that the logits imply
    discount: float = 1.0,  # of the implied rewards
) -> Run:
    """Likelihood, with the reward that the logits imply held small."""
    return setting.run("language_irl", Constant(), (InverseSoftQ(penalty, discount),), agent=Demonstrate())
