"""Curriculum that selects the tasks of a pool whose estimated pass rate is nearest to one half.

The estimate is a level for each kind of task plus an offset for each task.

Acts: nearer_by > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.estimators.level_plus_offset import Offsets
from strop.control.samplers.nearest_to_target import Nearest
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import SequenceMean


def near_half(
    setting: Setting = Setting(env="countdown:3+countdown:4"),
    pool: int = OfEndless(128),  # tasks per environment, sampled repeatedly; all of a table
    candidates: int = 4,  # candidate tasks per selected task
    kind_memory: float = 0.9,  # decay of the evidence on a kind's level, per version
    task_memory: float = 0.995,  # decay of the evidence on a task's offset, per version
) -> Run:
    """PCL's selection without a value model: pass rates from a task's own rollouts and those of its kind."""
    run = setting.run(
        "near_half",
        GroupMean(),
        (Reinforce(),),
        estimator=Offsets(kind_memory, task_memory),
        gates=(ZeroVariance(),),
        reduction=SequenceMean(),
    )
    return replace(
        run,
        sampler=Nearest(
            run.envs, setting.groups_per_step, candidates, pool=covering(run.envs, pool), seed=setting.seed
        ),
    )
