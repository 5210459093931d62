"""Generation runs a few versions ahead, and decoupled PPO learns from what it made.

Title: AReaL: A Large-Scale Asynchronous Reinforcement Learning System for Language Reasoning
Paper: arXiv 2505.24298 (2025)
Claim: Up to 2.57 times as fast as synchronous systems on the same GPUs, at equal or better accuracy.
Reading: `anchor` is what the clip is measured from: proximal (the weights before the step, AReaL's own), averaged
    (PPO-EWMA, 2110.00641) or interpolated (A-3PO, 2512.06547). A token's version is the engine's; the released client
    reads it after the segment returned.
Acts: lag > 0 and clipped_share > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.batch_standard import BatchStandard
from strop.training.losses.decoupled import Decoupled
from strop.training.trainers.torch import TorchTrainer


def areal(
    setting: Setting = Setting(lag=4),
    anchor: str = "proximal",  # proximal, averaged or interpolated
    minibatches: int = 4,
) -> Run:
    """No critic and no reference; advantages standardised over the batch, several clipped steps per draw."""
    window = max(setting.lag, 1) if anchor == "averaged" else 0
    trainer = TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, average_window=window)
    return setting.run("areal", BatchStandard(), (Decoupled(anchor=anchor),), minibatches=minibatches, trainer=trainer)
