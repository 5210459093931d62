"""Tasks from easy to hard, sorted anew as the policy learns; where all attempts fail, it rewrites a solution.

Title: Learning Like Humans: Advancing LLM Reasoning Capabilities via Adaptive Difficulty Curriculum Learning and
    Expert-Guided Self-Reformulation
Paper: arXiv 2505.08364 (2025)
Claim: 10 % better on AIME 2024 and 16.6 % on AIME 2025 than RL without both.
Reading: Difficulty is what the run's belief says; the paper tries the next batch out. What the policy writes with the
    whole solution before it and the world calls right joins its failed siblings, and its ratio is of the policy without
    the solution to the one that read it. The number of batches was not found.
Left out: Attempts that only measure.
Acts: inversion_rate > 0 and share/guided > 0 with world=arithmetic:4+countdown:4, tasks=8, batches=4, group_size=2
"""

from __future__ import annotations

from strop.control.budgets.retry_if_all_failed import AgainWhenLost
from strop.control.samplers.resorted import Resorted
from strop.generate.strategies.helped.reformulated import Reformulated
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean


def adcl_egsr(
    setting: Setting = Setting(world="arithmetic:3+countdown:3+arithmetic:4+countdown:4"),
    tasks: int = 64,  # of each world
    batches: int = 8,  # of all tasks; each is sorted anew before it is tried
    answer_alone: bool = False,  # whether a lost task's answer is shown, and not its working
    more: int = 4,  # attempts that read a solution, where all failed
) -> Run:
    """Worlds of a low level count as easy until something is known of them."""
    run = setting.run(
        "adcl_egsr",
        GroupStandard(),
        (Clip(),),
        budget=AgainWhenLost(setting.group_size, more),
        reduction=SequenceMean(),
    )
    run.sampler = Resorted(run.worlds, tasks, batches, setting.seed)
    run.strategy = Reformulated(run.worlds, answer_alone)
    return run
