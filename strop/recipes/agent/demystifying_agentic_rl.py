"""GRPO-TCR: SFT on tool-use conversations, then token-mean GRPO with clip-higher and rewards for tool use and length.

Title: Demystifying Reinforcement Learning in Agentic Reasoning
Paper: arXiv 2510.11701 (2025)
Claim: With real conversations to begin with, techniques that keep exploring and few deliberate calls, a 4B model
    reaches the level of models of 32B on four benchmarks.
Reading: As released: failures cost from 1 down to 0.6 by the number of rounds with tools; the last stretch before the
    token limit costs up to 1; clip ranges 0.2 and 0.28; a ratio of at most 10 where the advantage is negative; no KL
    penalty and no entropy bonus. Here the token limit is that of one completion, and a rollout's longest completion
    counts; in the release it is that of the conversation. The demonstrations are the environment's own.
Left out: Task selection by what a model solves.
Acts: warmup/nll > 0 and reward/softened > -1 and clipped_share > 0 and turns > 1 with shown=1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.rewards.overlong_penalty import Overlong
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, ScoreRange

# Tool-use reward (2510.11701): every round with a tool call reduces the penalty of a failed rollout by 0.1.

_WRONG = -1.0


@dataclass(frozen=True)
class Softened(Reward):
    """1 if the environment's rewards sum to 1 or more; else min(least, -1 + each * (messages - 2) / 2).

    Both sides' messages count, two for each completion, so a failure with one completion gets -1. With `shifted`, the
    messages of the next sibling are counted instead.
    """

    each: float = 0.1  # penalty reduction for each completion but the last
    least: float = -0.6  # largest reward of a failure
    shifted: bool = False  # count the next sibling's messages (control)

    is_relative: ClassVar[bool] = True  # because of `shifted`
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)
    grades: ClassVar[ScoreRange | None] = ScoreRange(-1.0, 1.0)
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
    each: float = 0.1,  # penalty reduction for each completion of a failed rollout but its last
    shifted: bool = False,  # count the next sibling's completions instead (control)
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
    dual: float = 10.0,  # upper bound of the ratio where the advantage is negative (dual clip)
    minibatches: int = 4,  # optimizer steps per training batch
) -> Run:
    """GRPO-TCR: token mean, clip higher, reward shaping."""
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
