"""DRA-GRPO (2505.09655): attempts that say the same share their reward."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.diversity_adjusted import DiversityAdjusted
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip
from strop.train.reductions.sequence_mean import SequenceMean


def dra_grpo(setting: Setting = Setting(world="countdown:3"), clip: float = 0.2) -> Run:
    """GRPO on rewards divided by how much of each attempt its siblings say, too."""
    advantage = DiversityAdjusted(GroupStandard(epsilon=1e-4))
    return setting.run("dra_grpo", advantage, (Clip(clip, clip),), reduction=SequenceMean())
