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
    """[chosen, rejected], or nothing, by the paper's scores: 1 right, 0 wrong, -1 no answer (`GradedAnswer`).

    Chosen is the longest right attempt that was not cut off, else the longest wrong one; rejected one without an
    answer, else a wrong one, taken by chance that depends on seed and group only. Two wrong attempts make no pair: the
    released script's pair of them rewards nothing but length. The longest is meant: brevity is not to be learned.
    """

    seed: int = 0  # of the choice among equals

    min_group: ClassVar[int] = 2

    def __call__(self, group: Group) -> Verdict:
        right = [a for a in group.scored if a.reward > 0.5 and a.outcome is Outcome.FINISHED]
        wrong = [a for a in group.scored if abs(a.reward) <= 0.5]
        unanswered = [a for a in group.scored if a.reward < -0.5]
        chosen = max(right or wrong, key=lambda attempt: attempt.num_tokens, default=None)
        others = unanswered or (wrong if right else [])
        if chosen is None or not others:
            return Verdict(None, f"no pair in {len(right)} right, {len(wrong)} wrong, {len(unanswered)} without answer")
        pair = [chosen, self._one_of(others, group.number)]
        return Verdict(replace(group, trajectories=pair), "kept the longest right and one that is not")

    def _one_of(self, attempts: Sequence[Trajectory], number: int) -> Trajectory:
        return attempts[int(np.random.default_rng([self.seed, number]).integers(len(attempts)))]
