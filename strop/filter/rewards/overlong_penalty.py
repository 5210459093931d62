"""Soft overlong penalty of DAPO (2503.14476): a linear length penalty just below the token limit.

Papers: dapo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Overlong(Reward):
    """0 up to max_tokens - cushion sampled tokens, then linear to -1 at max_tokens, and -1 beyond.

    Of a rollout with several completions the longest counts, since the limit is per completion.
    """

    max_tokens: int  # of a completion
    cushion: int  # tokens before the limit, over which the price rises
    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.cushion <= self.max_tokens:
            raise ConfigurationError(f"Overlong needs 0 < cushion <= {self.max_tokens} tokens, got {self.cushion}")

    def __call__(self, group: Group) -> list[float]:
        free = self.max_tokens - self.cushion
        longest = (max((len(turn.tokens) for turn in rollout.turns), default=0) for rollout in group.rollouts)
        excess = (max(tokens - free, 0) for tokens in longest)
        return [-min(tokens / self.cushion, 1.0) if tokens else 0.0 for tokens in excess]
