"""GRPO with a slow average of the policy as its reference."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip
from strop.train.losses.kl import Kl
from strop.train.trainers.moving_reference import MovingReference
from strop.train.trainers.torch import TorchTrainer


def averaged_reference(setting: Setting = Setting(), every: int = 10, keep: float = 0.995, kl: float = 0.04) -> Run:
    """The reference moves a little towards the policy every few versions."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    trainer = MovingReference(policy, reference, every, keep)
    return setting.run("averaged_reference", GroupStandard(), (Clip(), Kl("k3", kl)), trainer=trainer)
