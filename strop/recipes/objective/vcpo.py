"""VCPO (2602.17616): far off-policy with controlled variance: smaller steps on staler data, the quietest baseline."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.minimum_variance import MinimumVariance
from strop.train.reductions.sequence_mean import SequenceMean
from strop.train.step_scales.effective_sample_size import EffectiveSampleSize
from strop.train.trainers.torch import TorchTrainer


def vcpo(setting: Setting = Setting(lag=10), cap: float = 8.0, full: float = 1.0) -> Run:
    """Attempts weighed as wholes, no clip, no reference, one optimizer step per draw."""
    return setting.run(
        "vcpo",
        Constant(),  # credit needs gradients: the loss gives it
        (MinimumVariance(cap),),
        reduction=SequenceMean(),
        trainer=TorchTrainer(
            learning_rate=setting.learning_rate, device=setting.device, step_scale=EffectiveSampleSize(full)
        ),
    )
