"""Demonstrations learned as single-token choices: at each place tokens are drawn, and the right one is paid.

Title: One-Token Rollout: Guiding Supervised Fine-Tuning of LLMs with Policy Gradient
Paper: arXiv 2509.26313 (2025)
Claim: Better than supervised fine-tuning on mathematics, code and general reasoning.
Reading: How many tokens are drawn and what a wrong one costs were not found: 256 and 0.1 are ours. With `miss=0`
    wrong tokens are not pushed down, and the expected gradient is imitation times the policy's own probability.
Acts: hit_share < 1
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.imitation.one_token import OneToken


def otr(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    draws: int = 256,  # tokens drawn at each place
    miss: float = -0.1,  # what a wrong token earns
) -> Run:
    """At each place of a demonstration the policy draws tokens and is paid for the right one."""
    loss = OneToken(draws, miss, setting.seed)
    return setting.run("otr", Constant(), (loss,), agent=Demonstrate())
