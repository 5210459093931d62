"""PPO with a reward that bends with length, and a price on every token that was said before.

Title: Demystifying Long Chain-of-Thought Reasoning in LLMs
Paper: arXiv 2502.03373 (2025)
Claim: A cosine reward with a price on repetition keeps thoughts from growing without end, and makes training stable.
Reading: Values of the release's first experiments: right 2 to 1, wrong -10 to 0, -10 within 16 tokens of the limit;
    the answer is undiscounted, repetition discounted by 0.99, lambda 1. The price is added to whitened credit. Runs of
    40 tokens are for replies of thousands: here 4. Clip and optimizer steps per draw were not found: 0.2 and one.
Left out: Solutions found on the web as noisy answers, and the supervised stage on long thoughts.
Acts: repeated_share > 0 and reward/cosine_length != 0 and credit_within > 0
"""

from __future__ import annotations

from strop.filter.rewards.cosine_length import CosineLength
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.advantages.repetition_paid import RepetitionPaid
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic


def demystifying_long_cot(
    setting: Setting = Setting(world="countdown:3"),
    size: int = 4,  # tokens in a row that must not come again; 40 in the paper
    penalty: float = 0.05,  # of each token that was said before
    discount: float = 0.99,  # of that penalty, from token to token
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.01,  # weight of the penalty to the reference
) -> Run:
    """What the world would have paid is logged beside it and weighs nothing."""
    credit = RepetitionPaid(Gae(trace=1.0), size, penalty, discount)
    losses = (Clip(clip, clip), Kl("k2", kl))
    run = setting.run("demystifying_long_cot", credit, losses, values=Critic(device=setting.device))
    run.rewards = (CosineLength(run.rewards[0], setting.max_tokens), measured(run.worlds))
    return run
