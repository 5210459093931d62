"""Whole conversations with tools are shown; then a wider upper clip, and failures that used more tools lose less.

Title: Demystifying Reinforcement Learning in Agentic Reasoning
Paper: arXiv 2510.11701 (2025)
Claim: With real conversations to begin with, techniques that keep exploring and few deliberate calls, a 4B model
    reaches the level of models of 32B on four benchmarks.
Reading: The release: failures cost from 1 down to 0.6 by rounds with tools, the last stretch before the token limit
    costs up to 1, clip 0.2 and 0.28, a ratio of at most 10 where advantage is negative, no KL, no entropy bonus. The
    limit
    is that of one completion, and the longest counts; the release's is that of the conversation. The conversations that
    are shown are the environment's own.
Left out: The choice of tasks by what a model solves.
Acts: warmup/nll > 0 and reward/softened > -1 and clipped_share > 0 and turns > 1 with shown=1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.rewards.overlong_penalty import Overlong
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group

# Failures that tried more lose less (2510.11701): every round with a tool takes a tenth off the price of a wrong end.

_WRONG = -1.0


@dataclass(frozen=True)
class Softened(Reward):
    """1 where the environment paid 1 in all; else -1 + each * (messages - 2) / 2, and never more than `least`.

    Messages are those of both sides, two for each completion, so one completion is the plain -1. Shifted, a rollout is
    softened by the completions of the sibling after it.
    """

    each: float = 0.1  # by which each completion but the last softens a failure
    least: float = -0.6  # what the softest failure costs
    shifted: bool = False  # for a control

    is_relative: ClassVar[bool] = True  # with shifted, siblings matter
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not _WRONG <= self.least <= 0 or self.each < 0:
            raise ConfigurationError(f"Softened needs each >= 0 and -1 <= least <= 0, got {self.each}, {self.least}")

    def __call__(self, group: Group) -> Sequence[float]:
        completions = [len(rollout.turns) for rollout in group.rollouts]
        counted = completions[1:] + completions[:1] if self.shifted else completions
        pairs = zip(group.rollouts, counted, strict=True)
        return [1.0 if sum(rollout.turn_rewards) >= 1 else self._failed(2 * count) for rollout, count in pairs]

    def _failed(self, messages: int) -> float:
        return min(self.least, _WRONG + self.each * (messages - 2) / 2)


def demystifying_agentic_rl(
    setting: Setting = Setting(env="keyvalue:5", group_size=16),
    shown: int = 4,  # supervised steps on demonstrations before RL
    each: float = 0.1,  # by which each completion but the last softens a failure
    shifted: bool = False,  # failures are softened by a sibling's completions, for a control
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
    dual: float = 10.0,  # most that a ratio counts where advantage is negative
    minibatches: int = 4,
) -> Run:
    """GRPO that keeps exploring (GRPO-TCR): token mean, clip higher, reward shaping."""
    run = setting.run(
        "demystifying_agentic_rl",
        GroupStandard(),
        (Clip(low, high, dual),),
        minibatches=minibatches,
        warmup=taught(setting, "demystifying_agentic_rl", shown),
    )
    overlong = Overlong(setting.max_tokens, cushion=setting.max_tokens // 5)
    run.rewards = (Softened(each, shifted=shifted), overlong)
    return run
