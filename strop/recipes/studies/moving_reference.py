"""GRPO with a moving reference policy: reset to the policy at intervals, or a slow average of it.

Acts: reference_version > 0 with every=1
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.trainers.moving_reference import MovingReference
from strop.training.trainers.torch import TorchTrainer


def moving_reference(
    setting: Setting = Setting(),
    every: int = 50,  # versions between two updates of the reference
    keep: float = 0.0,  # weight of the old reference; 0 resets it, 0.995 with every=10 is GRPO-CARE
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """Every `every` versions the reference is averaged with the policy."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    trainer = MovingReference(policy, reference, every, keep)
    return setting.run("moving_reference", GroupStandard(), (Clip(), Kl("k3", kl)), trainer=trainer)
