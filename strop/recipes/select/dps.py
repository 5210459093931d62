"""A small Markov chain per task foretells which ones some attempts will solve and others not; these are tried.

Title: Dynamics-Predictive Sampling for Active RL Finetuning of Large Reasoning Models
Paper: arXiv 2603.10887 (2026)
Claim: The accuracy of oversampling and filtering with far fewer attempts, in mathematics, planning and visual geometry.
Reading: As released: what was counted fades by 0.7 per version, no bonus of entropy, groups of 8. 256 tasks stand for
    its data set, so that they come back; every draw is the best of all of them.
Left out: The bonus of entropy, whose weight is 0 in every released script.
Acts: chance_gain > 0 with tasks=16
"""

from __future__ import annotations

from strop.control.samplers.dynamics import Dynamics
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip
from strop.train.losses.kl import Kl
from strop.train.reductions.sequence_mean import SequenceMean


def dps(
    setting: Setting = Setting(world="countdown:4"),
    tasks: int = 256,  # of each world, to choose from
    keep: float = 0.7,  # share of what was counted of a task that is left one version later
) -> Run:
    """GRPO on tasks that are foretold to be solved by some."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.001))
    run = setting.run("dps", GroupStandard(), losses, reduction=SequenceMean())
    run.sampler = Dynamics(run.worlds, tasks, keep, setting.seed)
    return run
