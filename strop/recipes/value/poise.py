"""Two attempts per task, and a baseline that one's hidden states give the other.

Title: Your Language Model is Its Own Critic: Reinforcement Learning with Value Estimation from Actor's Internal
    States
Paper: arXiv 2605.07579 (2026)
Claim: As good as DAPO for less computation.
Reading: The last layer's states stand for those of layer 19; the three entropy figures are mean, spread and largest.
    The paper's ridge of 0.01 is for draws of over 1000 attempts: 64 it learns by heart.
Acts: explained_variance != 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.residual import Residual
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.values.probe import Probe


def poise(
    setting: Setting = Setting(group_size=2, groups_per_step=32),
    low: float = 0.2,
    high: float = 0.28,  # the upper bound of a ratio is 1 + high
    ridge: float = 300.0,  # the paper's 0.01 is for draws of over 1000 attempts: 64 it learns by heart
    window: int = 32,
) -> Run:
    """No critic, no spread: a ridge regression on the policy's own hidden states."""
    values = Probe(ridge=ridge, window=window)
    return setting.run("poise", Residual(), (Clip(low, high),), values=values, reduction=SequenceMean())
