"""IcePop (Ring-1T, 2510.18855): GRPO whose tokens count only where training and inference engine agree."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.corrections.icepop import IcePop
from strop.train.losses.clip import Clip
from strop.train.reductions.sequence_mean import SequenceMean
from strop.train.trainers.torch import TorchTrainer


def icepop(setting: Setting = Setting(lag=1), low: float = 0.5, high: float = 5.0) -> Run:
    """The gap is measured under the weights that sampled each token, which are kept while they are in flight."""
    return setting.run(
        "icepop",
        GroupStandard(),
        (Clip(anchor="old"),),
        correction=IcePop(low, high),
        reduction=SequenceMean(),
        trainer=TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, snapshots=setting.lag + 1),
    )
