"""Own successes come again with a rising weight, while pay for using tools fades; the surest tokens are not pushed.

Title: Learn the Ropes, Then Trust the Wins: Self-imitation with Progressive Exploration for Agentic Reinforcement
    Learning
Paper: arXiv 2509.22601 (2025)
Claim: Up to 16.1, 5.1 and 8.6 points more than GRPO, GiGPO and Dr.BoT on ALFWorld and up to 20.7 on WebShop.
Reading: GRPO without division, clip 0.2/0.28 to the policies that sampled, also of what is replayed. The memory is
    drawn whole when 128 attempts wait; the release has 2,048, with steps 16 times as large. It is a mean of its own
    beside that of new attempts, weighed by the schedule, in each of a draw's two optimizer steps (64 of 128 tasks); the
    release gives it steps of its own after the others, where Adam would undo most of its weight.
Left out: The release's own clip of the ratio for long answers, and its filter of answers that were cut.
Acts: replayed_share > 0 and replay_weight > 0 and credit_within > 0 and reward/tool_calls > 0
    with size=4, rise=3, covariance=0.2
"""

from __future__ import annotations

from strop.filter.rewards.tool_calls import ToolCalls
from strop.recipes.setting import Setting
from strop.replay.own_successes import OwnSuccesses
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.advantages.recalibrated import Recalibrated
from strop.training.advantages.without_covariant import WithoutCovariant
from strop.training.losses.clip import Clip
from strop.training.reductions.constant_length import ConstantLength
from strop.training.reductions.replayed_apart import ReplayedApart


def spear(
    setting: Setting = Setting(world="keyvalue:3"),
    size: int = 128,  # own successes that come again together
    age: int = 10,  # versions after which they are forgotten
    rise: int = 200,  # versions until they weigh as much as new attempts
    fall: int = 200,  # versions until the use of tools is not paid any more
    share: float = 0.02,  # of tokens that are not pushed because they covary most with their credit
    covariance: float = 1.0,  # above which that may happen
) -> Run:
    """Self-imitation grows as exploration fades."""
    run = setting.run(
        "spear",
        WithoutCovariant(Recalibrated(GroupMean(), rise), share, covariance, setting.seed),
        (Clip(0.2, 0.28),),
        buffer=OwnSuccesses(size, age),
        reduction=ReplayedApart(ConstantLength(setting.max_tokens)),
        minibatches=2,
    )
    run.rewards = (*run.rewards, ToolCalls(fall))
    return run
