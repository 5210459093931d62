"""The environments' own word on rollouts where a policy learns from something else."""

from __future__ import annotations

from strop.filter.rewards.env_check import Checked
from strop.filter.rewards.env_reward import Earned
from strop.roles import Environment, Reward


def measured(envs: tuple[Environment, ...]) -> Reward:
    """What the environments would have paid: written down beside the reward, and without weight."""
    return Earned(weight=0.0) if all(env.pays for env in envs) else Checked(envs, weight=0.0)
