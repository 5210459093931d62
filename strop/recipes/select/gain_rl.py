"""Tasks in the order of how closely the model's own states of them point the same way; a bell over the ranks moves on.

Title: Angles Don't Lie: Unlocking Training-Efficient RL Through the Model's Own Signals
Paper: arXiv 2506.02281 (2025)
Claim: More than 2.5 times as fast as plain GRPO in mathematics and code, and better with half of the data.
Reading: The paper's bell is 1000 ranks wide, moves by 500 and by at most 1000, of some 7500 tasks; of 255 that is 32,
    16 and 32. With rewards of 0 and 1 the drive takes the pass rate itself, where the release halves rewards of 2. The
    angles of attempts are measured by the first model.
Left out: Training on a draw in the order of ranks: each draw is one optimizer step.
Acts: middle_rank > 0
"""

from __future__ import annotations

from strop.control.samplers.angle_ranked import AngleRanked
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def gain_rl(
    setting: Setting = Setting(world="arithmetic:1+arithmetic:4+countdown:4"),
    tasks: int = 85,  # of each world, to choose from
    spread: float = 32.0,  # of the bell, in tasks
    stride: float = 16.0,  # of the bell, in tasks
    most: float = 32.0,  # tasks that the bell moves on in one step
) -> Run:
    """GRPO on tasks whose angles say that they are next."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.001))
    run = setting.run("gain_rl", GroupStandard(), losses, reduction=SequenceMean())
    run.sampler = AngleRanked(run.worlds, tasks, spread, stride, most, setting.seed)
    return run
