"""Right and brief: each reward is standardised in its group before they are added.

Title: GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL Optimization
Paper: arXiv 2601.05242 (2026)
Claim: Better than GRPO on several rewards at once: tool calls, mathematics and code.
Reading: The last standardisation is over attempts and not over tokens, and is done for a single reward as well.
Acts: credit_beside_rewards > 0 with group_size=8
"""

from __future__ import annotations

from strop.filter.rewards.brief import Brief
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.decoupled_standard import DecoupledStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean


def gdpo(
    setting: Setting = Setting(world="countdown:3"),
    limit: int = 22,  # tokens that still count as brief
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """The world's reward, and a second one for at most `limit` tokens."""
    run = setting.run("gdpo", DecoupledStandard(), (Clip(clip, clip),), reduction=SequenceMean())
    run.rewards = (*run.rewards, Brief(limit))
    return run
