"""Sibling-GRPO (V-STAR, 2602.10699): where attempts part ways, the next token is credited against its alternatives.

Each alternative counts once, by the mean reward of the attempts that go through it, however many those are. The credit
is added to that of `inner` at the token itself and nowhere else.
Papers: v-star
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from strop.roles import Advantage
from strop.types import Group, Metrics, Trajectory

_FLAT = 1e-4  # added to the spread, as in the release
Fork: TypeAlias = dict[int, list[Trajectory]]  # attempts by the token that they go on with


@dataclass(frozen=True)
class SiblingTokens(Advantage):
    """A + (R - mean R) / (sd R + 1e-4) over the tokens that follow one beginning, at least two of them.

    Attempts that share a beginning by chance are compared as those that were branched from each other are.
    """

    inner: Advantage

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            for depth, fork in forks(group.scored):
                for token, credit in credits(fork).items():
                    for attempt in fork[token]:
                        _add(attempt, depth, credit)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How many forks a group has, and how large the credit at them is."""
        found = [credit for group in groups for _, fork in forks(group.scored) for credit in credits(fork).values()]
        count = sum(1 for group in groups for _ in forks(group.scored))
        return {
            "forks": count / max(len(groups), 1),
            "fork_credit": float(np.mean(np.abs(found))) if found else 0.0,
        }


def forks(attempts: Sequence[Trajectory]) -> list[tuple[int, Fork]]:
    """Beginnings of the first reply after which attempts go on differently: how long each is, and who goes on how."""
    found: list[tuple[int, Fork]] = []
    waiting: list[tuple[int, list[Trajectory]]] = [(0, [attempt for attempt in attempts if attempt.turns])]
    while waiting:
        depth, together = waiting.pop()
        nexts: Fork = defaultdict(list)
        for attempt in together:
            if depth < len(path := attempt.turns[0].whole):
                nexts[int(path[depth])].append(attempt)
        if len(nexts) > 1:
            found.append((depth, dict(nexts)))
        waiting += [(depth + 1, group) for group in nexts.values() if len(group) > 1]
    return found


def credits(fork: Fork) -> dict[int, float]:
    """Of each token that follows: its attempts' mean reward, standardised over the tokens."""
    means = {token: float(np.mean([attempt.reward for attempt in group])) for token, group in fork.items()}
    values = np.array(list(means.values()))
    return {token: float((mean - values.mean()) / (values.std() + _FLAT)) for token, mean in means.items()}


def _add(attempt: Trajectory, depth: int, credit: float) -> None:
    """To the token at this depth, if the attempt wrote it itself."""
    place = depth - attempt.turns[0].given
    if attempt.advantages is not None and place >= 0:
        attempt.advantages[place] += np.float32(credit)
