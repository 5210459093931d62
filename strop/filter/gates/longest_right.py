"""The pair of DPO-VP (2503.12854): the longest right attempt against one without an answer, or else a wrong one.

Papers: iterative-dpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.roles import Gate
from strop.types import Group, Outcome, Trajectory, Verdict


@dataclass(frozen=True)
class LongestRight(Gate):
    """[chosen, rejected], or nothing. An attempt cut off has no answer, another one is right or wrong by its reward.

    Chosen is the longest right attempt, else the longest wrong one; rejected one without an answer, else a wrong one,
    taken by chance that depends on seed and group only. Two wrong attempts make a pair only with `may_pair_wrong`: that
    rewards nothing but length. The longest is meant: brevity is not to be learned. Where both were paid the same, the
    rejected one's reward is lowered by 1, so that any preference loss sees which is which.
    """

    threshold: float = 1.0  # the reward of a right attempt
    may_pair_wrong: bool = False
    seed: int = 0

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> Verdict:
        right = [a for a in group.scored if self._score(a) == 1]
        wrong = [a for a in group.scored if self._score(a) == 0]
        unanswered = [a for a in group.scored if self._score(a) == -1]
        chosen = max(right or wrong, key=lambda attempt: attempt.num_tokens, default=None)
        others = unanswered or [a for a in wrong if a is not chosen]
        if chosen is None or not others or not (right or unanswered or self.may_pair_wrong):
            return Verdict(None, f"no pair in {len(right)} right, {len(wrong)} wrong, {len(unanswered)} without answer")
        rejected = self._one_of(others, group.number)
        if rejected.reward >= chosen.reward:
            rejected = replace(rejected, reward=chosen.reward - 1)
        return Verdict(replace(group, trajectories=[chosen, rejected]), "kept the longest right and one that is not")

    def _score(self, attempt: Trajectory) -> int:
        """1 right, 0 wrong, -1 no answer."""
        if attempt.outcome is not Outcome.FINISHED:
            return -1
        return int(attempt.reward >= self.threshold - 1e-9)

    def _one_of(self, attempts: Sequence[Trajectory], number: int) -> Trajectory:
        return attempts[int(np.random.default_rng([self.seed, number]).integers(len(attempts)))]
