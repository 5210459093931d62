"""REINFORCE++ (Hu et al., 2501.03262): PPO's clip without a critic, advantages normalised over the whole batch."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.batch_standard import BatchStandard
from strop.train.losses.clip import Clip
from strop.train.losses.kl import Kl


def reinforce_plus_plus(setting: Setting = Setting(), clip: float = 0.2, kl: float = 0.01) -> Run:
    """Rewards standardised over the batch, PPO's clip, k2 penalty to the reference (its gradient is the KL's)."""
    losses = (Clip(clip, clip), Kl("k2", kl)) if kl else (Clip(clip, clip),)
    return setting.run("reinforce_plus_plus", BatchStandard(), losses)
