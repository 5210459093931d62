"""A success rate is drawn for each task from what is believed of it, and the most telling tasks are tried.

Title: VADE: Variance-Aware Dynamic Sampling via Online Sample-Level Difficulty Estimation for Multimodal RL
Paper: arXiv 2511.18902 (2025)
Claim: Better and with fewer attempts than uniform sampling and filtering on multimodal reasoning.
Reading: Beta counts per task and the score d (1 - d)^2 are the authors'. The factors of the two-scale decay were not
    found: 0.99 per version and 0.7 per visit are ours. 256 tasks stand for its data set, so that they come back.
    Its KL and optimizer steps per draw are not known: GRPO's 0.04 and one.
Left out: Images.
Acts: score_gain != 0 with tasks=16
"""

from __future__ import annotations

from strop.control.estimators.pass_rate_by_task import TaskCounts
from strop.control.samplers.thompson import Thompson
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def vade(
    setting: Setting = Setting(world="countdown:4"),
    tasks: int = 256,  # of each world, to choose from
    power: float = 2.0,  # of the share that is not solved: 2 prefers a third solved, 1 a half
    per_version: float = 0.99,  # share of a task's counts that is left one version later
    per_visit: float = 0.7,  # share of them that is left when it is tried again
) -> Run:
    """GRPO on the tasks that Thompson sampling chooses."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.04))
    run = setting.run(
        "vade", GroupStandard(), losses, belief=TaskCounts(per_version, per_visit), reduction=SequenceMean()
    )
    run.sampler = Thompson(run.worlds, tasks, power, setting.seed)
    return run
