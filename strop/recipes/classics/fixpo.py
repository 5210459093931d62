"""FixPO (2312.05405): an unclipped surrogate, a KL penalty that learns its weight, and repairs until all is near."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip
from strop.train.trainers.torch import TorchTrainer
from strop.train.trainers.two_phase import TwoPhase


def fixpo(setting: Setting = Setting(), limit: float = 0.2, minibatches: int = 2) -> Run:
    """No token of a draw moves by more than `limit` nats from where the draw found it."""
    trainer = TwoPhase(TorchTrainer(learning_rate=setting.learning_rate, device=setting.device), limit)
    unclipped = (Clip(low=1.0, high=1e9),)
    return setting.run("fixpo", GroupStandard(), unclipped, trainer=trainer, minibatches=minibatches)
