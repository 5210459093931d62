"""Inverse soft Q-learning for imitation: maximum likelihood plus a penalty on the reward that the logits imply.

Title: Imitating Language via Scalable Inverse Reinforcement Learning
Paper: arXiv 2409.01369 (2024)
Claim: As good as plain imitation on its tasks and more diverse, from fixed data.
Reading: The penalty is set per task in the paper; 0.1 is a re-implementation's.
Left out: The small online mixture.
Acts: implied_reward != 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.siblings import following
from strop.training.batch import Batch, Output
from strop.types import Metrics

# Imitation as inverse RL (2409.01369).


@dataclass(frozen=True)
class InverseSoftQ(Loss):
    """-log policy + penalty * (Q(s_t, a_t) - discount * V(s_t+1))^2, Q the raw logits and V their logsumexp.

    V is 0 after the last token, and its gradient is not stopped. In model families that shift or cap their logits the
    implied reward is a different one. The penalty is set per task in the paper; 0.1 is a re-implementation's.
    """

    penalty: float = 0.1  # weight of the squared implied reward
    discount: float = 1.0  # discount per token
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        both = output.over_logits(_action_and_state_value, batch.temperature)  # [T, 2]
        action, state = both.select(1, 0), both.select(1, 1)  # [T]
        reward = action - self.discount * following(state, batch)
        loss = torch.where(batch.trainable, state - action + self.penalty * reward.square(), 0.0)
        return loss, {"nll": batch.metric(state - action), "implied_reward": batch.metric(reward)}


def _action_and_state_value(logits: Tensor, tokens: Tensor, temperature: Tensor) -> Tensor:
    """Q of the token and V, from logits before division by the temperature: [C, 2]."""
    raw = logits * temperature.unsqueeze(1).to(logits.dtype)
    return torch.stack([raw.gather(1, tokens.unsqueeze(1)).squeeze(1), raw.logsumexp(-1)], 1)


def language_irl(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    penalty: float = 0.1,  # weight of the squared implied reward
    discount: float = 1.0,  # discount per token of the implied reward
) -> Run:
    """Maximum likelihood on one demonstration per task, with a penalty on the implied reward."""
    return setting.run("language_irl", Constant(), (InverseSoftQ(penalty, discount),), agent=Demonstrate())
