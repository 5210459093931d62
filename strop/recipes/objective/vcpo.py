"""Far off-policy with controlled variance: smaller steps on staler data, the quietest baseline.

Title: Stable Asynchrony: Variance-Controlled Off-Policy RL for LLMs
Paper: arXiv 2602.17616 (2026)
Claim: Stable at 128 steps off-policy, and 2.5 times as fast as synchronous training at equal results in tool use.
Reading: The baseline's weights are w^2 as in the formula; the release's are about w^4.
Acts: lag > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.minimum_variance import MinimumVariance
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.step_scales.effective_sample_size import EffectiveSampleSize
from strop.training.trainers.torch import TorchTrainer


def vcpo(
    setting: Setting = Setting(lag=10),
    cap: float = 8.0,  # largest importance weight of an attempt
    full: float = 1.0,  # effective share of the samples that deserves a whole step
) -> Run:
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
