"""One-token rollout (2509.26313): demonstrations learned as single-token choices."""

from __future__ import annotations

from strop.generate.agents.demonstrate import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.one_token import OneToken


def otr(setting: Setting = Setting(group_size=1, groups_per_step=64), draws: int = 256, miss: float = 0.0) -> Run:
    """At each place of a demonstration the policy draws tokens and is paid for the right one."""
    loss = OneToken(draws, miss, setting.seed)
    return setting.run("otr", Constant(), (loss,), agent=Demonstrate())
