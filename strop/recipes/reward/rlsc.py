"""No reward: an attempt counts as much as the policy was sure of it.

Title: Confidence Is All You Need: Few-Shot RL Fine-Tuning of Language Models
Paper: arXiv 2506.06395 (2025)
Claim: With 16 samples per question and 10 or 20 steps a 7B model gains 13.4 points on AIME 2024 and 21.2 on MATH500.
Reading: The sampled loss is built: chances of whole replies, taken when they were sampled, weigh the log-likelihood of
    the policy's own attempts. The sum over all replies that the paper prints has no gradient where it begins. 16
    attempts, temperature 0.5, the floor of 0.1 and 20 steps are the paper's; its learning rate of 1e-5 is for 7B. What
    the world would have paid is logged and weighs nothing.
Acts: confidence > 0 and credit_beside_rewards > 0
"""

from __future__ import annotations

from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.confidence import Confidence
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.constant_length import ConstantLength


def rlsc(
    setting: Setting = Setting(group_size=16, temperature=0.5, steps=20),
    floor: float = 0.1,  # credit of an attempt of chance 0; the paper's alpha
) -> Run:
    """The log-likelihood of a whole attempt, times its chance plus the floor; a mean over attempts."""
    run = setting.run("rlsc", Confidence(floor), (Reinforce(),), reduction=ConstantLength(1))
    run.rewards = (measured(run.worlds),)
    return run
