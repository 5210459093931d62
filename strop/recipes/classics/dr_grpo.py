"""GRPO without the two divisions that favour long wrong answers and easy tasks.

Title: Understanding R1-Zero-Like Training: A Critical Perspective
Paper: arXiv 2503.20783 (2025)
Claim: Answers stay shorter at equal accuracy; a 7B base model reaches 43.3 % on AIME 2024.
Reading: Every token is divided by the same constant length, the most a completion may have.
Acts: advantage > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.clip import Clip
from strop.training.reductions.constant_length import ConstantLength


def dr_grpo(
    setting: Setting = Setting(),
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """Rewards minus the group's mean, every token divided by the same constant length."""
    return setting.run("dr_grpo", GroupMean(), (Clip(clip, clip),), reduction=ConstantLength(setting.max_tokens))
