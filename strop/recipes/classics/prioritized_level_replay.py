"""Prioritized Level Replay: tasks with large absolute advantages are replayed more often, plus stale ones.

Title: Prioritized Level Replay
Paper: arXiv 2010.03934 (2021)
Claim: Better generalization and faster learning than uniform sampling of levels in procedurally generated games.
Reading: A level is a task. Its score is the mean |A| of its latest group; the paper has the errors of a critic. The
    temperature and the share of stale tasks are those of the release. Replay starts when a quarter of the pool has
    been seen; the release's default is all of it.
Acts: preference > 0 and seen_share > 0 with tasks=8
"""

from __future__ import annotations

from strop.control.samplers.prioritized_level_replay import LevelReplay
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean


def prioritized_level_replay(
    setting: Setting = Setting(env="countdown:4"),
    tasks: int = OfEndless(256),  # pool size per environment; all of a table
    softness: float = 0.1,  # temperature of the rank-based sampling; lower: high scores are preferred more
    stale: float = 0.1,  # share of the sampling probability that goes to tasks not seen for long
    start: float = 0.25,  # share of the pool that is seen before any task is replayed
) -> Run:
    """GRPO on tasks that are replayed by their score."""
    losses = (Clip(0.2, 0.2), Kl("k3", 0.04))
    run = setting.run("prioritized_level_replay", GroupStandard(), losses, reduction=SequenceMean())
    run.sampler = LevelReplay(run.envs, covering(run.envs, tasks), softness, stale, start, setting.seed)
    return run
