"""GRPO on a fixed set of tasks; a group in which all failed gets one of the task's former successes.

Title: ARPO: End-to-End Policy Optimization for GUI Agents with Experience Replay
Paper: arXiv 2505.16282 (2025)
Claim: 29.9 % on OSWorld, 6.4 points above the base model; replay is worth 3 points on the tasks trained on.
Reading: A replayed attempt takes the first one's place, with the reward it had; credit is given after that. Its ratio
    begins at 1, as released: logprobs are computed anew under the policy before the step. Pay for a format that can be
    read is half of that for the task, and decides neither who is replayed nor where. Two optimizer steps per draw and a
    dual clip of 3, as released.
Left out: Screens: the worlds here are the package's own. The choice of tasks that the first model solves now and then.
Acts: replayed_share > 0 and reward/formatted > 0 with world=arithmetic:6, tasks=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.few import Few
from strop.filter.gates.borrowed_success import BorrowedSuccess
from strop.filter.rewards.format import Formatted
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.corrections.truncated import Truncated
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean


def arpo_gui(
    setting: Setting = Setting(world="keyvalue:5"),
    tasks: int = 128,  # of each world, over and over
    kept: int = 8,  # successes of each task, the newest
    formatted: float = 0.5,  # weight of the pay for a format that can be read
) -> Run:
    """`tasks` of each world over and over, or no task ever comes back to its successes; clip 0.2/0.3, no KL."""
    run = setting.run(
        "arpo_gui",
        GroupStandard(),
        (Clip(0.2, 0.3, dual=3.0, anchor="proximal"),),
        gates=(BorrowedSuccess(kept, setting.seed),),
        correction=Truncated(target="proximal"),
        reduction=SequenceMean(),
        minibatches=2,
    )
    rewards = (*run.rewards, Formatted(must_think=False, weight=formatted))
    return replace(run, sampler=Few(run.worlds, tasks), rewards=rewards)
