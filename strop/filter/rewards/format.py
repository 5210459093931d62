"""A reward for the layout of replies (TON, 2505.16854; ARPO, 2505.16282): working between its tags, then what counts.

A working of nothing is in order: a thought that was skipped is laid out as well as a long one.
Papers: ton, arpo-gui, ghpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class Formatted(Reward):
    """The share of an attempt's replies that are <think>, working, </think> and something behind it, each tag once."""

    must_think: bool = True  # or a reply without tags is in order too: a tool's call
    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._share(attempt) for attempt in group.trajectories]

    def _share(self, attempt: Trajectory) -> float:
        replies = [turn.message.content for turn in attempt.turns]
        return sum(map(self._is_laid_out, replies)) / max(len(replies), 1)

    def _is_laid_out(self, reply: str) -> bool:
        if OPEN not in reply and CLOSE not in reply:
            return not self.must_think and bool(reply.strip())
        before, _, rest = reply.partition(OPEN)
        _, _, answer = rest.partition(CLOSE)
        is_once = (reply.count(OPEN), reply.count(CLOSE)) == (1, 1)
        return is_once and not before.strip() and bool(answer.strip())
