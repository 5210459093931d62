"""Of a pool of tasks, those nearest to one half by a level for each kind and an offset for each task.

Acts: nearer_by > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.estimators.level_plus_offset import Offsets
from strop.control.samplers.nearest_to_target import Nearest
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.sequence_mean import SequenceMean


def near_half(
    setting: Setting = Setting(env="countdown:3+countdown:4"),
    pool: int = 128,  # tasks of each environment that come back
    candidates: int = 4,  # tasks that are looked at for each one that is tried
    kind_memory: float = 0.9,  # what is left of knowledge of a kind's level after one version
    task_memory: float = 0.995,  # of a task's offset
) -> Run:
    """PCL's choice without a value model: what a task's own rollouts said, and those of its kind."""
    run = setting.run(
        "near_half",
        GroupMean(),
        (Reinforce(),),
        estimator=Offsets(kind_memory, task_memory),
        gates=(ZeroVariance(),),
        reduction=SequenceMean(),
    )
    return replace(run, sampler=Nearest(run.envs, setting.groups_per_step, candidates, pool=pool, seed=setting.seed))
