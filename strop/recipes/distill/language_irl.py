"""Imitation by inverse soft Q-learning (2409.01369) on the worlds' own demonstrations."""

from __future__ import annotations

from strop.generate.agents.demonstrate import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.inverse_soft_q import InverseSoftQ


def language_irl(
    setting: Setting = Setting(group_size=1, groups_per_step=64), penalty: float = 0.1, discount: float = 1.0
) -> Run:
    """Likelihood, with the reward that the logits imply held small."""
    return setting.run("language_irl", Constant(), (InverseSoftQ(penalty, discount),), agent=Demonstrate())
