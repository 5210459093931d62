"""PCL: a value model on prompts predicts pass rates; on-policy GRPO on the tasks nearest to 1/2.

Title: Prompt Curriculum Learning for Efficient LLM Post-Training
Paper: arXiv 2510.01135 (2025)
Claim: Tasks of medium difficulty are found 12 to 17 times as fast as by rollouts, at equal or better accuracy.
Reading: On-policy GRPO without KL penalty and without division by the standard deviation; every rollout weighs the
    same. Four candidates for each of a step's tasks; 512 of 16 rollouts in the paper, 8 here. The value model's
    learning rate was not found: at 1e-3 it separates levels within 16 steps, at 1e-4 it does not. Use tasks of several
    levels, or there is little to choose from. A task of an endless environment is a candidate once; with a pool it
    repeats, as in the paper's data sets.
Left out: A random share of tasks that would also correct the value model elsewhere; the paper has none either.
Acts: nearer_by > 0 and estimator_grad_norm > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.estimators.prompt_value_head import PromptValue
from strop.control.samplers.nearest_to_target import Nearest
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import SequenceMean


def pcl(
    setting: Setting = Setting(env="arithmetic:1+arithmetic:4+arithmetic:8", group_size=16),
    candidates: int = 4,  # tasks scored by the value model for each one that is sampled
    target: float = 0.5,  # preferred pass rate
    pool: int = 0,  # tasks of each environment, which repeat; 0: each is a candidate once
    value_learning_rate: float = 1e-3,  # of the value model
) -> Run:
    """The value model learns after each step from all groups."""
    run = setting.run(
        "pcl",
        GroupMean(),
        (Reinforce(),),
        estimator=PromptValue(value_learning_rate, device=setting.device),
        reduction=SequenceMean(),
    )
    return replace(run, sampler=Nearest(run.envs, setting.groups_per_step, candidates, target, pool, setting.seed))
