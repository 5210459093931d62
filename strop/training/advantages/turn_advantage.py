"""ArCHer's lower level (2402.19446): every token of a turn gets what the turn was better than expected.

Papers: archer-hierarchical
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import FloatArray, Group, Rollout


@dataclass(frozen=True)
class TurnAdvantage(Advantage):
    """A = Q(o, u) - V(o) of the token's turn, as `TurnCritic` noted it; undivided."""

    needs_values: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            rollout.advantages = np.repeat(*noted_turns(rollout, "TurnAdvantage")).astype(np.float32)


def noted_turns(rollout: Rollout, asked_by: str) -> tuple[FloatArray, list[int]]:
    """What `TurnCritic` noted of each written turn, and how many tokens the turn has."""
    lengths = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
    noted = rollout.policy_statistics.get("turn_advantages", np.zeros(0))
    if len(noted) != len(lengths):
        raise ConfigurationError(
            f"{asked_by} needs a note for each of {len(lengths)} turns of rollout {rollout.id}, got {len(noted)}: "
            "set values=TurnCritic()"
        )
    return noted, lengths
