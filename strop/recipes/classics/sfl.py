"""SFL: tasks of highest learnability p (1 - p), mixed with uniformly sampled ones.

Title: No Regrets: Investigating and Improving Regret Approximations for Curriculum Discovery
Paper: arXiv 2408.15099 (2024)
Claim: Sampling for learnability is better than level replay and domain randomization in navigation games.
Reading: Pass rates come from a pass-rate estimator that observes the training rollouts; the paper pays for rollouts of
    a fresh pool. Half of the tasks come from the best eighth of the pool, half from the whole pool.
Acts: score_gain != 0 with tasks=16, kept=4
"""

from __future__ import annotations

from strop.control.estimators.pass_rate_counts import TaskCounts
from strop.control.samplers.learnability import Learnability
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean


def sfl(
    setting: Setting = Setting(env="countdown:4"),
    tasks: int = OfEndless(256),  # pool size per environment; all of a table
    kept: int = 32,  # tasks of highest learnability
    others: float = 0.5,  # share of tasks sampled uniformly from the whole pool
) -> Run:
    """GRPO on the tasks of highest learnability and uniformly sampled ones."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.04))
    run = setting.run("sfl", GroupStandard(), losses, estimator=TaskCounts(), reduction=SequenceMean())
    run.sampler = Learnability(run.envs, covering(run.envs, tasks), kept, others, setting.seed)
    return run
