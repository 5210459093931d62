"""PPO: clipped policy gradient with a critic and GAE.

Title: Proximal Policy Optimization Algorithms
Paper: arXiv 1707.06347 (2017)
Claim: Better than other online policy gradients, with a good balance of sample efficiency, simplicity and wall time.
Acts: clipped_share > 0 and advantage_within > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic


def ppo(
    setting: Setting = Setting(),
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    trace: float = 0.95,  # lambda of generalized advantage estimation
    minibatches: int = 2,
    epochs: int = 1,
) -> Run:
    """GAE with a critic of the policy's size; several clipped optimizer steps per batch."""
    return setting.run(
        "ppo",
        Gae(trace=trace),
        (Clip(clip, clip),),
        values=Critic(device=setting.device),
        minibatches=minibatches,
        epochs=epochs,
    )
