"""A token costs the more, the more often its task is solved.

Title: Just Enough Thinking: Efficient Reasoning with Adaptive Length Penalties Reinforcement Learning
Paper: arXiv 2506.05256 (2025)
Claim: Half of the tokens at little loss, and those spared on easy tasks go to hard ones.
Reading: The attempt's own length is paid for; readings of the paper print the longest, which would leave no signal
    within a group. The paper's beta of 1e-7 is for answers a thousand times as long as the pocket model's.
Acts: credit_beside_rewards > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.adaptive_length import AdaptiveLength
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def alp(
    setting: Setting = Setting(world="countdown:3"),
    beta: float = 1e-3,  # price of a token in a group that is all right
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """The paper's beta of 1e-7 is for answers a thousand times as long."""
    return setting.run("alp", AdaptiveLength(GroupStandard(), beta), (Clip(clip, clip),))
