"""SAPO (2511.20347): GRPO with a soft gate in place of the clip."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.sapo import Sapo


def sapo(setting: Setting = Setting(), rising: float = 1.0, falling: float = 1.05) -> Run:
    """Tokens fade out of the gradient as they move away from the policy that sampled them."""
    return setting.run("sapo", GroupStandard(), (Sapo(rising, falling),))
