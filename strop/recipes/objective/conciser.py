"""Learn to be right first, then to be short where every attempt is right.

Title: Walk Before You Run! Concise LLM Reasoning via Reinforcement Learning
Paper: arXiv 2505.21178 (2025)
Claim: Shorter answers than other models of its kind at equal or better accuracy.
Reading: The paper's length reward was not found: 1 - tokens / max_tokens is added. With GRPO's division any falling
    line gives the same credit. Start stage 2 from the model of stage 1.
Acts: credit_beside_rewards > 0 with group_size=2, groups_per_step=16
"""

from __future__ import annotations

from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.brevity_when_all_right import BrevityWhenAllRight
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy


def conciser(
    setting: Setting = Setting(world="countdown:3"),
    stage: int = 2,  # 1 (right) or 2 (short)
    low: float = 0.2,  # the lower bound of a ratio is 1 - low
    high: float = 0.28,  # the upper bound of a ratio is 1 + high
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """Stage 1 is GRPO with clip-higher, dynamic sampling and an entropy bonus; start stage 2 from its model."""
    if stage not in (1, 2):
        raise ConfigurationError(f"conciser has stages 1 and 2, got {stage}")
    if stage == 1:
        losses = (Clip(low, high), Entropy(entropy))
        return setting.run("conciser", GroupStandard(), losses, gates=(ZeroVariance(),))
    return setting.run("conciser", BrevityWhenAllRight(GroupStandard(), setting.max_tokens), (Clip(low, high),))
