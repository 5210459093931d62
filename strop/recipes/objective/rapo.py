"""GRPO on a forward leash that is loose where nothing was gained.

Title: Unlocking Reasoning Capabilities in LLMs via Reinforcement Learning Exploration
Paper: arXiv 2510.03865 (2025)
Claim: Models of 3B and 7B solve tasks that their base model never does.
Reading: How the reward flattens the reference is not printed: an exponent of floor + (1 - floor) * reward.
Acts: tempered_kl > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.tempered_kl import TemperedKl
from strop.training.reductions.sequence_mean import SequenceMean


def rapo(
    setting: Setting = Setting(),
    kl: float = 0.01,  # weight of the penalty to the reference
    entropy: float = 0.001,  # weight of the entropy bonus
    floor: float = 0.5,  # exponent of the reference where nothing was earned
) -> Run:
    """Forward KL to a reference tempered by the reward, and an entropy bonus."""
    losses = (Clip(), TemperedKl(floor, weight=kl), Entropy(entropy))
    return setting.run("rapo", GroupStandard(), losses, reduction=SequenceMean())
