"""Short inputs first, then longer ones, and with them what was hard among the short ones.

Title: QwenLong-L1: Towards Long-Context Large Reasoning Models with Reinforcement Learning
Paper: arXiv 2505.17667 (2025)
Claim: A 32B model level with Claude-3.7-Sonnet-Thinking on seven benchmarks of questions about long documents.
Reading: Supervised training first, then two phases of RL; inputs are passages of sums, and the paper's 20,000 and
    60,000 tokens are 55 and 120 characters here. Four optimizer steps per draw (32 of 128 tasks), groups of 8,
    temperature 0.7 and no penalty to the reference. How hard a short task is says its first group. What share of the
    second phase they are was not found.
Left out: The judge beside the rule, since the worlds' own check is exact; top-p of 0.95, under which ratios would begin
    below 1.
Acts: carried_share > 0 with warmup_steps=1, tasks=8, carried=0.9, most=1.0
"""

from __future__ import annotations

from strop.control.samplers.length_phases import LengthPhases
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def qwenlong_l1(
    setting: Setting = Setting(world="passages:1+passages:3+passages:5+passages:8", temperature=0.7),
    warmup_steps: int = 6,  # of supervised training
    short: int = 55,  # characters of the longest input of the first phase
    long: int = 120,  # characters of the longest input of the second phase
    tasks: int = 128,  # of each world
    carried: float = 0.25,  # share of short inputs in the second phase
    most: float = 0.0,  # mean success of the short ones that are carried over
) -> Run:
    """Half of the steps on inputs of at most `short` characters, the rest on those up to `long` and hard short ones."""
    run = setting.run("qwenlong_l1", GroupStandard(), (Clip(),), minibatches=min(4, setting.groups_per_step))
    half = (max(setting.steps // 2, 1),)
    run.sampler = LengthPhases(run.worlds, (short, long), half, tasks, carried, most, setting.seed)
    run.warmup = shown(setting, "qwenlong_l1", warmup_steps)
    return run
