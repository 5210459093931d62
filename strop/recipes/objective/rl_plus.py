"""RL-PLUS: policy gradient on rollouts and one demonstration per group, weighted by multiple importance sampling.

Title: RL-PLUS: Countering Capability Boundary Collapse of LLMs in Reinforcement Learning with Hybrid-policy
    Optimization
Paper: arXiv 2508.00222 (2025)
Claim: Up to 69.2 % above GRPO on average over six mathematics and six other benchmarks.
Reading: The unknown behaviour policy of demonstrations is assumed uniform over the vocabulary, as in the paper. The
    release's probability of 1 (`guess=1`) makes the gradient of rare tokens vanish. Nothing is clipped. Two optimizer
    steps per batch, as released.
Acts: outside_share > 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.roles import Loss
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.batch import Batch, Output
from strop.training.losses.entropy import Entropy
from strop.training.reductions.means import ConstantLength
from strop.training.requirements import Logprobs, Need
from strop.types import Metrics


@dataclass(frozen=True)
class RlPlus(Loss):
    """-policy / behaviour * A on sampled tokens, -2 policy / (w + old) * A * (1 - policy)^focus on external ones.

    External tokens are those of version -1. w = (old + guess) / 2 is the assumed behaviour policy; without `guess` the
    guess is uniform, 1 / vocabulary, as in the paper. The release's guess of 1 makes the gradient of rare tokens 0.
    `focus` raises the weight of improbable tokens. Nothing is clipped.
    """

    guess: float | None = None  # assumed behaviour probability of an external token; None: 1 / vocabulary
    focus: float = 0.5  # exponent of (1 - policy): higher favours improbable tokens
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("proximal")})
    scope: ClassVar[str] = "rollout"
    contains_ratio: ClassVar[bool] = True  # a correction on top would count it twice

    def __post_init__(self) -> None:
        if self.guess is not None and not 0 < self.guess <= 1:
            raise ConfigurationError(f"RlPlus needs 0 < guess <= 1, a probability, got {self.guess}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        before, is_external = batch.logprobs_of("proximal"), batch.trainable & (batch.versions < 0)  # [T]
        own = batch.log_ratio(output.logprobs, batch.behavior_logprobs).exp()  # [T]
        guess = output.over_logits(_uniform, where=is_external) if self.guess is None else self.guess
        ratio = torch.where(is_external, self._external(output.logprobs, before, guess), own)
        loss = torch.where(batch.trainable, -ratio * batch.advantages, 0.0)
        return loss, {"outside_share": batch.metric(is_external.to(loss.dtype)), "ratio": batch.metric(ratio)}

    def _external(self, logprobs: Tensor, old: Tensor, guess: Tensor | float) -> Tensor:
        """Importance weight of an external token, at most 4 / guess: [T]."""
        policy = logprobs.exp()
        old_probability = old.exp().nan_to_num(nan=0.0)  # prompt tokens may hold anything
        focus = (1 - policy.detach()).clamp(min=0) ** self.focus
        return 2 * policy / (1.5 * old_probability + 0.5 * guess) * focus


def _uniform(logits: Tensor, tokens: Tensor) -> Tensor:
    """Probability of each token under a uniform policy: [C]."""
    return logits.new_full((len(tokens),), 1 / logits.shape[-1])


def rl_plus(
    setting: Setting = Setting(),
    guess: float | None = None,  # assumed behaviour probability of demonstration tokens; none: 1 / vocabulary
    focus: float = 0.5,  # exponent of (1 - policy): higher favours improbable tokens
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """One rollout of each group is the environment's demonstration, whose reward counts in the group mean."""
    return setting.run(
        "rl_plus",
        GroupMean(),
        (RlPlus(guess, focus), Entropy(entropy)),
        strategy=Demonstrated(Demonstrate()),
        reduction=ConstantLength(setting.max_tokens),
        minibatches=2,
    )
