"""NLPO: PPO with a critic, within the nucleus that was sampled from.

Title: Is Reinforcement Learning (Not) for Natural Language Processing: Benchmarks, Baselines, and Building Blocks for
    Natural Language Policy Optimization
Paper: arXiv 2210.01241 (2022)
Claim: NLPO is steadier than PPO and fits preferences better on six generation tasks.
Reading: The masking policy is the one that sampled, new with every version. The release kept its first copy.
Left out: A mask kept over several versions; a KL within the reward, over the masked policy and with a weight that
    adapts (here a k2 loss over the whole one); five epochs per draw; a least number of tokens in the nucleus.
Acts: clipped_share > 0 and masked_kl > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.kl import Kl
from strop.training.losses.nucleus_clip import NucleusClip
from strop.training.values.critic import Critic
from strop.types import Sampling


def rl4lms(
    setting: Setting = Setting(),
    top_p: float = 0.9,  # mass of the nucleus
    clip: float = 0.2,
    kl: float = 0.01,  # weight of the penalty to the reference
    minibatches: int = 2,
) -> Run:
    """The masking policy is the one that sampled, new with every version."""
    sampling = Sampling(setting.temperature, top_p, max_tokens=setting.max_tokens)
    return setting.run(
        "rl4lms",
        Gae(discount=0.99),
        (NucleusClip(top_p, clip), Kl("k2", kl)),
        values=Critic(device=setting.device),
        sampling=sampling,
        minibatches=minibatches,
    )
