"""Parallel-thinking format of Parallel-R1 (2509.07980), and its reward: accuracy, at times with a bonus for blocks.

The paper's tags are words (<Parallel>, <Path>, <Summary>); here they are one character each, which the bundled model
learns in a few steps: `<think>{[3+4=7][3+4=7]}(7)</think>7`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE
from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.success import is_right
from strop.types import Group, Rollout

OPEN_BLOCK, CLOSE_BLOCK = "{", "}"
OPEN_PATH, CLOSE_PATH = "[", "]"
OPEN_SUMMARY, CLOSE_SUMMARY = "(", ")"
_FEWEST = 2  # paths of a block


def block(paths: list[str]) -> str:
    """Paths as they stand behind what opened a block, up to where their summary begins."""
    return "".join(f"{OPEN_PATH}{path}{CLOSE_PATH}" for path in paths) + CLOSE_BLOCK + OPEN_SUMMARY


def num_valid_blocks(text: str) -> int:
    """How many blocks there are; 0 where one of them has fewer than two paths or no summary behind it."""
    parts = text.split(OPEN_BLOCK)[1:]
    return len(parts) if all(map(_is_valid, parts)) else 0


def _is_valid(part: str) -> bool:
    inside, closed, behind = part.partition(CLOSE_BLOCK)
    return bool(closed) and inside.count(OPEN_PATH) >= _FEWEST and behind.startswith(OPEN_SUMMARY)


def in_parallel(completion: str, paths: int) -> str:
    """A demonstration whose working is found on several paths and summed up as its answer."""
    working, closed, answer = completion.rpartition(CLOSE)
    opening, _, steps = working.rpartition(">")
    told = f"{OPEN_BLOCK}{block([steps] * paths)}{answer}{CLOSE_SUMMARY}"
    return f"{opening}>{told}{CLOSE}{answer}" if closed else completion


@dataclass(frozen=True)
class ParallelBonus(Reward):
    """1 if right by `judge`, else -1; plus `bonus` for a right rollout with a valid parallel block.

    The bonus applies from version `plain` on of every `period`, and never after version `last`.
    """

    judge: Reward
    bonus: float = 0.2  # for a right rollout in parallel
    period: int = 10  # versions after which it begins again
    plain: int = 8  # of them without a bonus, the first
    last: int = 0  # version with a bonus; 0: all
    weight: float = 1.0

    needs_success: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.judge.is_inline

    def __post_init__(self) -> None:
        if not 0 <= self.plain <= self.period or self.period < 1:
            raise ConfigurationError(
                f"ParallelBonus needs period >= 1 and 0 <= plain <= period, got {self.period} and {self.plain}"
            )

    def __call__(self, group: Group) -> RewardScores:
        is_paid = group.version % self.period >= self.plain and not 0 < self.last < group.version
        bonus = self.bonus if is_paid else 0.0
        return shaped(self, group, lambda _: [_with_bonus(rollout, bonus) for rollout in group.rollouts], self.judge)


def _with_bonus(rollout: Rollout, bonus: float) -> float:
    return (1.0 + bonus * bool(num_valid_blocks(spoken(rollout)))) if is_right(rollout) else -1.0


def spoken(rollout: Rollout) -> str:
    """What its last context says in all: paths are contexts of their own before it."""
    first = max((index for index, turn in enumerate(rollout.turns) if turn.fresh), default=0)
    return "".join(turn.message.content for turn in rollout.turns[first:])
