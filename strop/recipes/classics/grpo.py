"""GRPO: group-normalized advantages, PPO clipping, KL penalty to the reference policy; no critic.

Title: DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models
Paper: arXiv 2402.03300 (2024)
Claim: A 7B model reaches 51.7 % on MATH, with less memory than PPO.
Left out: Process rewards, and the paper's pretraining.
Acts: advantage > 0 and reference_kl != 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean


def grpo(
    setting: Setting = Setting(),
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """Group-normalized advantages, PPO clipping, KL penalty (k3 estimator) to the reference policy."""
    losses = (Clip(clip, clip), Kl("k3", kl)) if kl else (Clip(clip, clip),)
    return setting.run("grpo", GroupStandard(), losses, reduction=SequenceMean())
