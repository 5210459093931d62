"""PPO with a critic that classifies: returns as distributions over bins, learned by cross-entropy.

Title: Stop Regressing: Training Value Functions via Classification for Scalable Deep RL
Paper: arXiv 2403.03950 (2024)
Claim: Values learned by cross-entropy scale better than by regression, from Atari to a language agent.
Reading: The target is HL-Gauss with the paper's 0.75 bins; rewards from 0 to 1 have a margin on both sides.
Acts: value_cross_entropy > 0 and credit_within > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.binned_critic import BinnedCritic


def stop_regressing(
    setting: Setting = Setting(),
    bins: int = 51,  # of the distribution of returns
    trace: float = 0.95,  # lambda of generalized advantage estimation
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """Rewards from 0 to 1, with a margin on both sides."""
    critic = BinnedCritic(bins=bins, device=setting.device)
    return setting.run("stop_regressing", Gae(trace=trace), (Clip(clip, clip),), values=critic)
