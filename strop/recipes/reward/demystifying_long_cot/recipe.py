"""PPO with a cosine length reward and a discounted per-token repetition penalty, for long chains of thought.

Title: Demystifying Long Chain-of-Thought Reasoning in LLMs
Paper: arXiv 2502.03373 (2025)
Claim: A cosine reward with a repetition penalty keeps chains of thought from growing without bound and stabilizes
    training.
Reading: Values of the release's first experiments: right answers 2 to 1, wrong ones -10 to 0, -10 within 16 tokens of
    the limit; the answer's reward is undiscounted, the repetition penalty discounted by 0.99, lambda 1. The penalty is
    added to the whitened advantage. The release's repeated runs of 40 tokens fit completions of thousands of tokens:
    here 4. Clip range and optimizer steps per batch were not found: 0.2 and one.
Left out: Solutions found on the web as noisy answers, and the supervised stage on long chains of thought.
Acts: repeated_share > 0 and reward/cosine_length != 0 and advantage_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.filter.rewards.weighted_sum import as_one
from strop.recipes.environment_specs import measured
from strop.recipes.reward.demystifying_long_cot.reward import CosineLength
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.arithmetic.td_traces import traced
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic
from strop.types import Group, IntArray, Metrics, Rollout

# Per-token repetition penalty (2502.03373): without it the policy pads wrong answers, because long ones cost less.
#
# Reading: the penalty's returns are added to the advantages of `inner`, after their whitening if it whitens; the critic
# predicts the returns of `inner` alone.


@dataclass(frozen=True)
class RepetitionPaid(Advantage):
    """A_t of `inner` - penalty * (discounted count of tokens from t on that repeat an earlier run of tokens)."""

    inner: Advantage
    size: int = 40  # tokens of a run that counts as repeated
    penalty: float = 0.05  # per repeated token
    discount: float = 0.99  # per token

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.discount <= 1:
            raise ConfigurationError(
                f"RepetitionPaid needs size >= 1 and a discount from 0 to 1, got {self.size} and {self.discount}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for rollout in (rollout for group in groups for rollout in group.scored):
            if rollout.advantages is not None:
                rollout.advantages = (rollout.advantages + self._advantage(rollout)).astype(np.float32)

    def _advantage(self, rollout: Rollout) -> NDArray[np.float64]:
        paid = -self.penalty * repeated_tokens(rollout, self.size).astype(np.float64)
        return traced(paid, np.zeros_like(paid), 0.0, self.discount, 1.0)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report the share of repeated tokens; keeps no state."""
        found = [repeated_tokens(rollout, self.size) for group in groups for rollout in group.scored]
        tokens = np.concatenate([*found, np.zeros(0, dtype=np.bool_)])
        return {"repeated_share": float(tokens.mean())} if len(tokens) else {}


def repeated_tokens(rollout: Rollout, size: int) -> NDArray[np.bool_]:
    """Whether each sampled token belongs to a run that occurred earlier; runs lie within a turn: [N] bool."""
    seen: set[tuple[int, ...]] = set()
    return np.concatenate(
        [*(_repeated(turn.tokens, size, seen) for turn in rollout.turns), np.zeros(0, dtype=np.bool_)]
    )


def _repeated(tokens: IntArray, size: int, seen: set[tuple[int, ...]]) -> NDArray[np.bool_]:
    found = np.zeros(len(tokens), dtype=np.bool_)
    for start in range(len(tokens) - size + 1):
        own = tuple(tokens[start : start + size].tolist())
        if own in seen:
            found[start : start + size] = True
        seen.add(own)
    return found


def demystifying_long_cot(
    setting: Setting = Setting(env="countdown:3"),
    size: int = 4,  # tokens of a run that counts as repeated; 40 in the paper
    penalty: float = 0.05,  # per repeated token
    discount: float = 0.99,  # of that penalty, per token
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """The environment's own reward is logged with weight 0."""
    advantage = RepetitionPaid(Gae(trace=1.0), size, penalty, discount)
    losses = (Clip(clip, clip), Kl("k2", kl))
    run = setting.run("demystifying_long_cot", advantage, losses, values=Critic(device=setting.device))
    run.rewards = (CosineLength(as_one(run.rewards), setting.max_tokens), measured(run.envs))
    return run
