"""Memory-R2's credit (2605.21768): each session is compared with the same session of siblings.

Papers: memory-r2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import credit_turns
from strop.types import Group, Metrics, Trajectory


@dataclass(frozen=True)
class SessionStandard(Advantage):
    """A of all turns of a session = (r - mean) / (std + epsilon) over siblings that reached it; std has N - 1 below.

    r is the last session's score (global; 0 where it broke off before a sibling's did), this one's (session), or the
    mean of this one's and all later ones' (cumulative). A family is compared with itself alone, so that sessions which
    were tried again from one memory never enter another baseline.
    """

    pays: Literal["global", "session", "cumulative"] = "global"
    turns: int = 2  # of a session
    epsilon: float = 1e-6

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ConfigurationError(f"SessionStandard needs turns >= 1, got {self.turns}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rows = [self._rewards(attempt, self._longest(group)) for attempt in group.scored]
            credit = [np.zeros(len(row)) for row in rows]
            for session in range(max(map(len, rows), default=0)):
                there = [index for index, row in enumerate(rows) if len(row) > session]
                values = np.array([rows[index][session] for index in there])
                spread = values.std(ddof=1) if len(values) > 1 else 0.0
                for index, value in zip(there, (values - values.mean()) / (spread + self.epsilon), strict=True):
                    credit[index][session] = value
            for attempt, own in zip(group.scored, credit, strict=True):
                credit_turns(attempt, [own[number // self.turns] for number in range(len(attempt.turns))])

    def _longest(self, group: Group) -> int:
        return max((-(-len(attempt.turns) // self.turns) for attempt in group.scored), default=0)

    def _rewards(self, attempt: Trajectory, sessions: int) -> list[float]:
        """One for each session that the attempt began."""
        paid = list(attempt.turn_rewards)
        scores = [sum(paid[low : low + self.turns]) for low in range(0, len(attempt.turns), self.turns)]
        match self.pays:
            case "session":
                return scores
            case "cumulative":
                return [float(np.mean(scores[number:])) for number in range(len(scores))]
        return [scores[-1] if len(scores) == sessions else 0.0 for _ in scores]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how many attempts were at one session alone, and how many there are of each family."""
        attempts = [attempt for group in groups for attempt in group.scored]
        return {"local_share": sum(a.facts.get("local", 0.0) for a in attempts) / max(len(attempts), 1)}
