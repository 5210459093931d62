"""PPO on the attempts that the policy was least sure of.

Title: ESRL: Efficient Sampling-based Reinforcement Learning for Sequence Generation
Paper: arXiv 2308.02223 (2023)
Claim: Less time and memory for sampling at equal quality, in translation, summaries and RLHF.
Reading: The rule of the release, in its RLHF: 30 % of attempts, the surest ones, are left out; see the mechanism for
    what differs. Its other stage, sampling without a graph and one forward pass for the gradient, is what every trainer
    here does.
Left out: The paper's adaptation of the sampling size and temperature to the policy's capability, whose formula was not
    found. The release's KL to the reference as part of the reward.
Acts: confidence_gap > 0
"""

from __future__ import annotations

from strop.filter.gates.least_confident import LeastConfident
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic


def esrl(
    setting: Setting = Setting(),
    share: float = 0.3,  # of each group, that is left out
) -> Run:
    """A critic says what was expected; the rest is PPO with one step per draw."""
    return setting.run(
        "esrl",
        Gae(),
        (Clip(0.2, 0.2),),
        gates=(LeastConfident(share),),
        values=Critic(device=setting.device),
    )
