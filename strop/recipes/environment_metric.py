"""The worlds' own word on attempts where a policy learns from something else."""

from __future__ import annotations

from strop.filter.rewards.env_check import Checked
from strop.filter.rewards.env_reward import Earned
from strop.roles import Reward, World


def measured(worlds: tuple[World, ...]) -> Reward:
    """What the worlds would have paid: written down beside the reward, and without weight."""
    return Earned(weight=0.0) if all(world.pays for world in worlds) else Checked(worlds, weight=0.0)
