"""RL on everything with few attempts, then on ever fewer hard tasks with many.

Title: DRIVE: Data Curation Best Practices for Reinforcement Learning with Verifiable Reward in Competitive Code
    Generation
Paper: arXiv 2511.06307 (2025)
Claim: Ever smaller sets of hard tasks make it better; RL on all 175 of them at once took it from .602 to .506.
Reading: The first stage has 32 steps of groups of 8 on the whole world, the second 128 steps of groups of 64 on the
    72, then 50, then 25 hardest of 175 tasks, for 64, 32 and 32 steps. All 175 are tried once before the first set is
    chosen: 44 steps of 4 tasks, which come before those 128. The paper's batches are larger.
Left out: Supervised training on tasks of which hard ones are doubled, before both stages.
Acts: tasks_left < 12 with warmup_steps=1, tasks=12, first=4, second=3, third=2, groups_per_step=8
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.hardest import Hardest
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def drive(
    setting: Setting = Setting(world="countdown:4", steps=172, groups_per_step=4, group_size=64),
    warmup_steps: int = 32,  # of the first stage
    warmup_attempts: int = 8,  # at each task of the first stage
    tasks: int = 175,  # of each world, in the second stage
    first: int = 72,  # tasks of the first hard set
    second: int = 50,  # of those, tasks of the second
    third: int = 25,  # of those, tasks of the third
) -> Run:
    """Two runs: the second begins with the model of the first, and has half, a quarter and a quarter for its sets."""
    run = setting.run("drive", GroupStandard(), (Clip(),))
    left = setting.steps + -tasks * len(run.worlds) // setting.groups_per_step  # once all were tried
    half, quarter = max(left // 2, 1), max(left // 4, 1)
    run.sampler = Hardest(run.worlds, tasks, (first, second, third), (half, quarter), setting.seed)
    if warmup_steps:
        wide = 2 * setting.groups_per_step
        stage = replace(setting, steps=warmup_steps, groups_per_step=wide, group_size=warmup_attempts, heldout_every=0)
        run.warmup = stage.run("drive", GroupStandard(), (Clip(),))
    return run
