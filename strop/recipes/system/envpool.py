"""Episodes of all rollouts in a few processes, whose answers come in blocks as they are ready.

Title: EnvPool: A Highly Parallel Reinforcement Learning Environment Execution Engine
Paper: arXiv 2206.10558 (2022)
Claim: One million frames a second on Atari and three million on MuJoCo on one machine; on a laptop 2.8 times what a
    process for each environment gives.
Reading: Processes instead of threads, because environments here are Python: an episode stays in the one that it began
    in. A block is handed on when so many answers are ready, or when no episode is at work: rollouts end, and the last
    ones would wait for ever. No episode is reset by itself: the next rollout has one of its own. The paper's rule
    of two to three episodes for each place in a block holds: 64 rollouts are made at once. Training is GRPO's, in
    an environment of several turns.
Left out: Rings of memory that nobody locks, pinned threads, episodes in C++.
Acts: episodes_per_process > 1
"""

from __future__ import annotations

from strop.environments.isolation.pool import Pooled
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def envpool(
    setting: Setting = Setting(env="keyvalue:3"),
    processes: int = 2,  # that serve the episodes of all rollouts
    batch: int = 24,  # answers that go on together
    seconds: float = 30.0,  # within which an episode answers, or its process is killed
) -> Run:
    """Any environment, in a pool."""
    run = setting.run("envpool", GroupStandard(), (Clip(0.2, 0.2),))
    wrap_envs(run, lambda env: (Pooled(env, processes, batch, seconds),))
    return run
