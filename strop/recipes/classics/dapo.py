"""DAPO (Yu et al., 2503.14476): clip higher, dynamic sampling, token mean, soft punishment of overlong answers."""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.overlong import Overlong
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip


def dapo(setting: Setting = Setting(), low: float = 0.2, high: float = 0.28) -> Run:
    """Groups without contrast are replaced by others; no KL penalty."""
    run = setting.run("dapo", GroupStandard(), (Clip(low, high),), gates=(ZeroVariance(),))
    run.rewards = (*run.rewards, Overlong(setting.max_tokens, cushion=setting.max_tokens // 5))
    return run
