"""One-token rollout: policy gradient on demonstrations, with tokens sampled at each position and rewarded on a match.

Title: One-Token Rollout: Guiding Supervised Fine-Tuning of LLMs with Policy Gradient
Paper: arXiv 2509.26313 (2025)
Claim: Better than supervised fine-tuning on mathematics, code and general reasoning.
Reading: The number of sampled tokens and the reward of a wrong one were not found; 256 and -0.1 are our choice. With
    `miss=0` wrong tokens are not pushed down, and the expected gradient is that of imitation times the policy's own
    probability.
Acts: hit_share < 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.token_draws import drawn, token_keys, uniforms
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class OneToken(Loss):
    """-(1 / samples) * sum over sampled tokens of R log policy; R is 1 for the demonstration's token, else `miss`.

    `miss` below 0 pushes wrong samples down. With miss = 0 the expected gradient is that of supervised learning times
    the policy's probability of the right token, so tokens of probability 0 are not learned. The sampled tokens depend
    on seed, step, rollout and position only, not on the micro-batches of a step.
    """

    samples: int = 256  # tokens sampled at each position
    miss: float = -0.1  # reward of a wrong token
    seed: int = 0  # seed of the sampled tokens
    weight: float = 1.0

    scope: ClassVar[str] = "rollout"

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigurationError(f"OneToken needs samples >= 1, got {self.samples}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        both = output.over_logits(self._sampled, token_keys(batch, self.seed))  # [T, 2]
        loss = torch.where(batch.trainable, both.select(1, 0), 0.0)
        return loss, {"hit_share": batch.metric(both.select(1, 1))}

    def _sampled(self, logits: Tensor, tokens: Tensor, keys: Tensor) -> Tensor:
        """Loss and share of hits at each position: [C, 2]."""
        logprobs = logits.log_softmax(-1)
        sampled = drawn(logprobs.detach(), uniforms(keys, self.samples))  # [C, K]
        hit = sampled == tokens.unsqueeze(1)
        reward = torch.where(hit, 1.0, self.miss).to(logprobs.dtype)
        # rounding can sample a token of probability 0, and 0 * -inf would be NaN
        gain = reward * logprobs.gather(1, sampled).clamp(min=-1e4)
        return torch.stack([-gain.mean(1), hit.to(logprobs.dtype).mean(1)], 1)


def otr(
    setting: Setting = Setting(group_size=1, groups_per_step=64),
    samples: int = 256,  # tokens sampled at each position
    miss: float = -0.1,  # reward of a wrong token
) -> Run:
    """Policy gradient over tokens sampled at each position of a demonstration."""
    loss = OneToken(samples, miss, setting.seed)
    return setting.run("otr", Constant(), (loss,), agent=Demonstrate())
