"""ECHO (2605.24517): an agent that also learns to foresee what its world answers."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip
from strop.train.losses.echo import Echo


def echo_env(setting: Setting = Setting(world="guess:1"), foresight: float = 0.05) -> Run:
    """GRPO on what the policy wrote, likelihood on what the world said; made for worlds of several turns."""
    return setting.run("echo_env", GroupStandard(), (Clip(0.2, 0.28), Echo(foresight)))
