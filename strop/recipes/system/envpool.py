"""Environments of all attempts in a few processes, whose answers come in blocks as they are ready.

Title: EnvPool: A Highly Parallel Reinforcement Learning Environment Execution Engine
Paper: arXiv 2206.10558 (2022)
Claim: One million frames a second on Atari and three million on MuJoCo on one machine; on a laptop 2.8 times what a
    process for each environment gives.
Reading: Processes instead of threads, because worlds here are Python: an environment stays in the one that it began in.
    A block is handed on when so many answers are ready, or when no environment is at work: attempts end, and the last
    ones would wait for ever. No environment is reset by itself: the next attempt has one of its own. The paper's rule
    of two to three environments for each place in a block holds: 64 attempts are made at once. Training is GRPO's, in
    a world of several turns.
Left out: Rings of memory that nobody locks, pinned threads, environments in C++.
Acts: environments_per_process > 1
"""

from __future__ import annotations

from strop.environments.isolation.pool import Pooled
from strop.recipes.setting import Setting
from strop.recipes.wrapped_environments import wrap_worlds
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def envpool(
    setting: Setting = Setting(world="keyvalue:3"),
    processes: int = 2,  # that serve the environments of all attempts
    batch: int = 24,  # answers that go on together
    seconds: float = 30.0,  # within which an environment answers, or its process is killed
) -> Run:
    """Any world, in a pool."""
    run = setting.run("envpool", GroupStandard(), (Clip(0.2, 0.2),))
    wrap_worlds(run, lambda world: (Pooled(world, processes, batch, seconds),))
    return run
