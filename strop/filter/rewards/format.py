"""Format reward (TON, 2505.16854; ARPO, 2505.16282): a chain of thought in think tags, then the answer.

An empty chain of thought is accepted: skipping thought is as well-formed as a long one.

Papers: ton, arpo-gui, ghpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.roles import Reward
from strop.types import Group, Rollout


@dataclass(frozen=True)
class Formatted(Reward):
    """Share of a rollout's completions of the form <think>, text, </think>, text, with each tag exactly once."""

    must_think: bool = True  # or a completion without tags is in order too: a tool's call
    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [self._share(rollout) for rollout in group.rollouts]

    def _share(self, rollout: Rollout) -> float:
        completions = [turn.message.content for turn in rollout.turns]
        return sum(map(self._is_laid_out, completions)) / max(len(completions), 1)

    def _is_laid_out(self, completion: str) -> bool:
        if OPEN not in completion and CLOSE not in completion:
            return not self.must_think and bool(completion.strip())
        before, _, rest = completion.partition(OPEN)
        _, _, answer = rest.partition(CLOSE)
        is_once = (completion.count(OPEN), completion.count(CLOSE)) == (1, 1)
        return is_once and not before.strip() and bool(answer.strip())
