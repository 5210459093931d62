"""PPO from states that demonstrations went through, chosen at random: the policy writes the rest.

Title: Dataset Reset Policy Optimization for RLHF
Paper: arXiv 2404.08495 (2024)
Claim: Better win rates than PPO and DPO on TL;DR summaries and Anthropic's HH data, under GPT-4's judgement.
Reading: Demonstrations of the world stand for preferred replies, and its outcome for the reward model; every attempt is
    reset, as released. Credit, critic and penalty see what the policy wrote; the release's value loss sees given tokens
    as well. A k2 loss to the reference stands for the KL within the reward. Weight of the penalty, epochs and
    minibatches are not in the sources read: 0.05, one and two.
Left out: The reward model that is fitted to preferences first.
Acts: share/branched > 0 and fact/shared > 0
"""

from __future__ import annotations

from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.reset_to_demonstration import ResetToDemonstration
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic


def dr_po(
    setting: Setting = Setting(world="countdown:4"),
    share: float = 1.0,  # of attempts that are reset; 0 is PPO
    kl: float = 0.05,  # weight of the penalty to the reference
) -> Run:
    """Each attempt is given the beginning of a demonstration, of random length."""
    return setting.run(
        "dr_po",
        Gae(trace=0.95),
        (Clip(0.2, 0.2), Kl("k2", kl)),
        values=Critic(device=setting.device),
        strategy=ResetToDemonstration(Demonstrate(least=1.0), share),
        minibatches=2,
    )
