"""Environments where success rates moved most lately are drawn more often, by a mixture of Gaussians over names and
levels.

Title: Teacher Algorithms for Curriculum Learning of Deep RL in Continuously Parameterized Environments
Paper: arXiv 1910.07224 (2019)
Claim: A teacher that follows absolute learning progress scales to spaces of tasks that are mostly unfeasible.
Reading: The space has two axes, environment and level. A fit after 64 groups and not 250: eight steps here.
Acts: learning_progress > 0 and gaussians > 0 with window=4
"""

from __future__ import annotations

from strop.control.samplers.alp_gmm import LearningProgress
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean

_ENVS = "arithmetic:1+arithmetic:2+arithmetic:3+arithmetic:4+arithmetic:5+arithmetic:6+countdown:3+countdown:4"


def alp_gmm(
    setting: Setting = Setting(env=_ENVS, heldout_tasks=32),
    window: int = 64,  # groups that the mixture is fitted to, and between two fits
    others: float = 0.2,  # share of draws from any environment
) -> Run:
    """GRPO where learning progresses."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.04))
    run = setting.run("alp_gmm", GroupStandard(), losses, reduction=SequenceMean())
    run.sampler = LearningProgress(run.envs, window, others, setting.seed)
    return run
