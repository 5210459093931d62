"""A process reward model: how good a beginning is, by an entropy-regularised mean of what becomes of it.

Title: Entropy-Regularized Process Reward Model
Paper: arXiv 2412.11006 (2024)
Claim: 1 % on GSM8K and 2 to 3 % on MATH with best-of-N, more than 1 % under RLHF.
Reading: Labels are not rounded to three decimals, as the release does, and no absolute value hides a wrong sign. A step
    is a calculation of the working; the whole solution has its own reward as label. The verdict is + or -, as there.
    Completions per step and sizes are ours, for a small model.
Left out: Best-of-N and rejection sampling; `strop train par judge=FOLDER` is rewarded by the model that is made.
Acts: label > 0 and label_error > 0 and share/teacher > 0 with samples=4, steps=1
"""

from __future__ import annotations

from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.strategies.prefix_success import PrefixSuccess
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.preferences.step_verdict import StepVerdict
from strop.training.reductions.sequence_mean import SequenceMean


def er_prm(
    setting: Setting = Setting(group_size=2, learning_rate=3e-4),
    samples: int = 8,  # completions of each beginning
    eta: float = 1.0,  # of the mean over them: 0 is the plain one, above it is nearer to the best
) -> Run:
    """group_size solutions of each task are cut behind each step and finished by the first policy."""
    return setting.run(
        "er_prm",
        Constant(),
        (StepVerdict(),),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device)),
        strategy=PrefixSuccess(samples, eta),
        reduction=SequenceMean(),
    )
