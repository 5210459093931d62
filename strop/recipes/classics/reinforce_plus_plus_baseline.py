"""REINFORCE++-baseline (2501.03262): group mean first, then the whole draw standardised."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.baseline_standard import BaselineStandard
from strop.train.losses.clip import Clip
from strop.train.losses.kl import Kl


def reinforce_plus_plus_baseline(setting: Setting = Setting(), clip: float = 0.2, kl: float = 0.001) -> Run:
    """No group is divided by its own spread; KL as a loss."""
    return setting.run("reinforce_plus_plus_baseline", BaselineStandard(), (Clip(clip, clip), Kl("k2", kl)))
