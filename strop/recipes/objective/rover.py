"""The value of a uniformly random policy, learned as a log-ratio.

Title: Random Policy Valuation is Enough for LLM Reasoning with Verifiable Rewards
Paper: arXiv 2509.24981 (2025)
Claim: 8.2 points more pass@1, 16.8 more pass@256 and 17.6 % more diversity.
Reading: The attempt's centred reward stands on every token, as released; the theory pays the last one. Four optimizer
    steps per draw and temperature 0.6, as in the release's script for mathematics, which also divides by the group's
    deviation; that for countdown does not, and neither does this.
Acts: q != 0 and next_q != 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_mean import GroupMean
from strop.training.losses.rover import Rover


def rover(
    setting: Setting = Setting(temperature=0.6),
    scale: float = 1.0,  # of the log-ratio that is Q
) -> Run:
    """A regression to the centred reward and the mean Q of the next state."""
    return setting.run("rover", GroupMean(), (Rover(scale),), minibatches=4)
