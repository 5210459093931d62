"""Expert iteration against PPO, as Havrilla et al. (2403.04642) compare them: is imitating one's successes enough?

Papers: expert-iteration
"""

from __future__ import annotations

from strop.effects import Experiment
from strop.filter.rewards.constant import Constant
from strop.recipes.classics.ppo import ppo
from strop.recipes.objective.expert_iteration import expert_iteration
from strop.recipes.setting import Setting
from strop.run import Run


def setting(seed: int) -> Setting:
    return Setting(world="arithmetic:4", seed=seed, learning_rate=2e-5, heldout_tasks=256, heldout_every=0)


def treatment(seed: int) -> Run:
    """Imitate the attempts that were right."""
    return expert_iteration(setting(seed))


def control(seed: int) -> Run:
    """What the paper compares with: a critic and clipped steps."""
    return ppo(setting(seed))


def negative(seed: int) -> Run:
    """Expert iteration that is told every attempt was right: imitation without selection."""
    run = expert_iteration(setting(seed))
    run.rewards = (Constant(),)
    return run


experiment = Experiment(
    key="expert-iteration",
    claim="At equal generated tokens, expert iteration reaches a higher held-out accuracy than PPO.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=80_000,
)
