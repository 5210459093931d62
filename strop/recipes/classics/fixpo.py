"""FixPO: unclipped PPO with a learned KL weight, and repair steps until every token is in the trust region.

Title: Guaranteed Trust Region Optimization via Two-Phase KL Penalization
Paper: arXiv 2312.05405 (2023)
Claim: A trust region holds after every update for less than 5 % more gradient steps, at the performance of PPO.
Reading: The KL is taken over the full next-token distribution at every sampled token. The guarantee covers the states
    of the batch.
Acts: kl_weight != 1 and kl_largest > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.two_phase import TwoPhase


def fixpo(
    setting: Setting = Setting(),
    limit: float = 0.2,  # largest KL per token from the policy before the step, in nats
    minibatches: int = 2,
) -> Run:
    """No token of a batch ends with a KL above `limit` nats from the policy before the step."""
    trainer = TwoPhase(TorchTrainer(learning_rate=setting.learning_rate, device=setting.device), limit)
    unclipped = (Clip(low=1.0, high=1e9),)
    return setting.run("fixpo", GroupStandard(), unclipped, trainer=trainer, minibatches=minibatches)
