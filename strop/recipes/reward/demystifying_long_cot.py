"""PPO with a reward that bends with length, and a price on every token that was said before.

Title: Demystifying Long Chain-of-Thought Reasoning in LLMs
Paper: arXiv 2502.03373 (2025)
Claim: A cosine reward with a price on repetition keeps thoughts from growing without end, and makes training stable.
Reading: Values of the release's first experiments: right 2 to 1, wrong -10 to 0, -10 within 16 tokens of the limit;
    the answer is undiscounted, repetition discounted by 0.99, lambda 1. The price is added to whitened advantage. Runs
    of
    40 tokens are for completions of thousands: here 4. Clip and optimizer steps per batch were not found: 0.2 and one.
Left out: Solutions found on the web as noisy answers, and the supervised stage on long thoughts.
Acts: repeated_share > 0 and reward/cosine_length != 0 and credit_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.filter.rewards.cosine_length import CosineLength
from strop.recipes.environment_metric import measured
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.arithmetic.td_traces import traced
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic
from strop.types import Group, IntArray, Metrics, Rollout

# A price on repetition, token by token (2502.03373): without it, wrong answers are padded for being long.
#
# Reading: the second stream of advantage is added to that of `inner`, which may have been whitened before; a critic
# predicts the first one alone.


@dataclass(frozen=True)
class RepetitionPaid(Advantage):
    """A_t of `inner` - penalty * (discounted count of tokens from t on that belong to a run seen before)."""

    inner: Advantage
    size: int = 40  # tokens of a run that must not come again in a rollout
    penalty: float = 0.05  # of each of its tokens
    discount: float = 0.99  # from token to token

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
        """Says how much of the batch was said before; nothing is remembered."""
        found = [repeated_tokens(rollout, self.size) for group in groups for rollout in group.scored]
        tokens = np.concatenate([*found, np.zeros(0, dtype=np.bool_)])
        return {"repeated_share": float(tokens.mean())} if len(tokens) else {}


def repeated_tokens(rollout: Rollout, size: int) -> NDArray[np.bool_]:
    """Written tokens of runs that the rollout wrote before, within a turn each: [N] bool."""
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
    size: int = 4,  # tokens in a row that must not come again; 40 in the paper
    penalty: float = 0.05,  # of each token that was said before
    discount: float = 0.99,  # of that penalty, from token to token
    clip: float = 0.2,  # PPO clip range of the importance ratio
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """What the environment would have paid is logged beside it and weighs nothing."""
    advantage = RepetitionPaid(Gae(trace=1.0), size, penalty, discount)
    losses = (Clip(clip, clip), Kl("k2", kl))
    run = setting.run("demystifying_long_cot", advantage, losses, values=Critic(device=setting.device))
    run.rewards = (CosineLength(run.rewards[0], setting.max_tokens), measured(run.envs))
    return run
