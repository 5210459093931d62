"""Expert iteration against PPO, as Havrilla et al. (2403.04642) compare them: is imitating one's successes enough?

Papers: expert-iteration
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import Flat
from strop.recipes.classics.ppo import ppo
from strop.recipes.objective.expert_iteration import expert_iteration
from strop.recipes.setting import Setting
from strop.run import Run


def arithmetic(setting: Setting) -> Setting:
    return replace(setting, env="arithmetic:4", learning_rate=2e-5, heldout_tasks=256)


def treatment(setting: Setting) -> Run:
    """Imitate the rollouts that were right."""
    return expert_iteration(arithmetic(setting))


def control(setting: Setting) -> Run:
    """What the paper compares with: a critic and clipped steps."""
    return ppo(arithmetic(setting))


def negative(setting: Setting) -> Run:
    """Expert iteration that is told every rollout was right: imitation without selection."""
    return replace(treatment(setting), rewards=(Flat(),))


experiment = Experiment(
    key="expert-iteration",
    claim="At equal generated tokens, expert iteration reaches a higher held-out accuracy than PPO.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=80_000,
)
