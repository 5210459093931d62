"""Dr. GRPO: GRPO without length and std normalization.

Title: Understanding R1-Zero-Like Training: A Critical Perspective
Paper: arXiv 2503.20783 (2025)
Claim: Completions stay shorter at equal accuracy; a 7B base model reaches 43.3 % on AIME 2024.
Reading: The loss of every token is divided by the same constant, the maximum completion length.
Acts: advantage > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.means import ConstantLength


def dr_grpo(
    setting: Setting = Setting(),
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """Rewards minus the group mean; token losses divided by the maximum completion length."""
    return setting.run("dr_grpo", GroupMean(), (Clip(clip, clip),), reduction=ConstantLength(setting.max_tokens))
