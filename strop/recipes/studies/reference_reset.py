"""GRPO with a reference that is reset to the policy now and then."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip
from strop.train.losses.kl import Kl
from strop.train.trainers.moving_reference import MovingReference
from strop.train.trainers.torch import TorchTrainer


def reference_reset(setting: Setting = Setting(), every: int = 50, keep: float = 0.0, kl: float = 0.04) -> Run:
    """`keep` above 0 averages instead of resetting: 0.995 every 10 versions is GRPO-CARE's."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    trainer = MovingReference(policy, reference, every, keep)
    return setting.run("reference_reset", GroupStandard(), (Clip(), Kl("k3", kl)), trainer=trainer)
