"""A small Markov chain per task foretells which ones some attempts will solve and others not; these are tried.

Title: Dynamics-Predictive Sampling for Active RL Finetuning of Large Reasoning Models
Paper: arXiv 2603.10887 (2026)
Claim: The accuracy of oversampling and filtering with far fewer attempts, in mathematics, planning and visual geometry.
Reading: As released for mathematics: what was counted fades by 0.7 per version (0.5 for Countdown), groups of 8, bounds
    of 0.2 and 0.28 with a dual clip at 10, no KL, one mean over all tokens, two minibatches per draw (four for
    Countdown). 256 tasks stand for its data set, so that they come back; every draw is the best of all of them.
Left out: The uncertainty of the state as part of its score, whose weight is 0 in every released script. The
    loss's bonus of 0.001 on entropy.
Acts: chance_gain > 0 with tasks=16
"""

from __future__ import annotations

from strop.control.samplers.dynamics import Dynamics
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def dps(
    setting: Setting = Setting(world="countdown:4"),
    tasks: int = 256,  # of each world, to choose from
    keep: float = 0.7,  # share of what was counted of a task that is left one version later
) -> Run:
    """GRPO on tasks that are foretold to be solved by some."""
    losses = (Clip(0.2, 0.28, dual=10.0),)
    run = setting.run("dps", GroupStandard(), losses, minibatches=min(2, setting.groups_per_step))
    run.sampler = Dynamics(run.worlds, tasks, keep, setting.seed)
    return run
