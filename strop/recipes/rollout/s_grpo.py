"""One thought per task, with answers forced at random points of it; the earliest right one earns most.

Title: S-GRPO: Early Exit via Reinforcement Learning in Reasoning Models
Paper: arXiv 2505.07686 (2025)
Claim: Replies shorter by 35 to 61 %, accuracy better by 0.7 to 6.1 points.
Reading: Rewards minus their mean, one mean per attempt, no KL. The n-th right answer earns 1 / 2^(n - 1), counted from
    the earliest exit. group_size counts the whole thought and its exits; their number was not found (a port has 4).
    The thought is trained once, in the whole attempt. The inducer is the end of a thought alone: the bundled model
    does not read the paper's sentence before it, "Time is limited, stop thinking and start answering." Optimizer steps
    per draw are not known: one.
Acts: share/branched > 0 and reward/decaying > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.decaying import Decaying
from strop.generate.strategies.serial_exits import SerialExits
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean


def s_grpo(
    setting: Setting = Setting(group_size=4),
    inducer: str = "</think>",  # said after a cut; the next token begins the answer
) -> Run:
    """A group is one whole attempt and group_size - 1 early exits from it."""
    run = setting.run(
        "s_grpo",
        GroupMean(),
        (Clip(0.2, 0.2),),
        strategy=SerialExits(inducer),
        reduction=SequenceMean(),
    )
    (judged,) = run.rewards
    run.rewards = (Decaying(judged), replace(judged, weight=0.0))  # type: ignore[type-var]
    return run
