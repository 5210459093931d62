"""ALP-GMM curriculum: a Gaussian mixture samples environments and levels with high learning progress.

Title: Teacher Algorithms for Curriculum Learning of Deep RL in Continuously Parameterized Environments
Paper: arXiv 1910.07224 (2019)
Claim: A teacher that follows absolute learning progress scales to task spaces that are mostly infeasible.
Reading: The task space has two axes: environment and level. The mixture is fitted every 64 groups instead of every
    250; 64 groups are eight steps here.
Acts: learning_progress > 0 and gaussians > 0 with window=4
"""

from __future__ import annotations

from strop.control.samplers.alp_gmm import LearningProgress
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean

_ENVS = "arithmetic:1+arithmetic:2+arithmetic:3+arithmetic:4+arithmetic:5+arithmetic:6+countdown:3+countdown:4"


def alp_gmm(
    setting: Setting = Setting(env=_ENVS, heldout_tasks=32),
    window: int = 64,  # groups that one fit of the mixture uses, and groups between two fits
    others: float = 0.2,  # share of tasks sampled uniformly from all environments
) -> Run:
    """GRPO on the environments and levels with the highest learning progress."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.04))
    run = setting.run("alp_gmm", GroupStandard(), losses, reduction=SequenceMean())
    run.sampler = LearningProgress(run.envs, window, others, setting.seed)
    return run
