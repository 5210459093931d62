"""Advantages per turn: relative to siblings, to turns of the same role, or from a turn-level critic.

Papers: archer-hierarchical
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.environments.needs import TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.training.arithmetic.turn_returns import set_turn_advantages, turn_returns
from strop.types import FloatArray, Group, Rollout

# A baseline per role: where one policy plays several roles, a turn is compared only with turns of its role.


@dataclass(frozen=True)
class PerRole(Advantage):
    """A of a turn = its return - the mean return of all turns of its role in the group.

    The role of a turn is the policy name it was sampled under: with one policy name and one turn per rollout this is
    the group mean. Returns are not discounted from turn to turn: policy names in separate contexts have no order.
    """

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            returns = [turn_returns(rollout, 1.0) for rollout in group.scored]
            by_role: defaultdict[str, list[float]] = defaultdict(list)
            for rollout, own in zip(group.scored, returns, strict=True):
                for turn, value in zip(rollout.turns, own, strict=True):
                    by_role[turn.sampling.policy_name].append(value)
            means = {role: float(np.mean(values)) for role, values in by_role.items()}
            for rollout, own in zip(group.scored, returns, strict=True):
                turns = zip(rollout.turns, own, strict=True)
                set_turn_advantages(rollout, [value - means[turn.sampling.policy_name] for turn, value in turns])


# ArCHer's lower level (2402.19446): every token of a turn gets the turn's advantage over its expected value.


@dataclass(frozen=True)
class TurnAdvantage(Advantage):
    """A = Q(o, u) - V(o) of the token's turn, as recorded by `TurnCritic`; not standardised."""

    needs_values: ClassVar[bool] = True
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            rollout.advantages = np.repeat(*noted_turns(rollout, "TurnAdvantage")).astype(np.float32)


def noted_turns(rollout: Rollout, asked_by: str) -> tuple[FloatArray, list[int]]:
    """`TurnCritic`'s advantage of each non-empty turn, and the turns' token counts."""
    lengths = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
    noted = rollout.policy_statistics.get("turn_advantages", np.zeros(0))
    if len(noted) != len(lengths):
        raise ConfigurationError(
            f"{asked_by} needs a turn advantage for each of {len(lengths)} turns of rollout {rollout.id}, "
            f"got {len(noted)}: set values=TurnCritic()"
        )
    return noted, lengths


# Turn-level return against that of the siblings' turns of the same index.


@dataclass(frozen=True)
class TurnMean(Advantage):
    """A of turn k = return of turn k - mean over the siblings that have a turn k; all tokens of a turn share it.

    The return is the discounted sum of the environment's rewards from that turn on. A rollout without rewards per turn
    has its whole reward at its end.
    """

    discount: float = 1.0  # from turn to turn

    min_group: ClassVar[int] = 2
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (TURNS,)

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            returns = [turn_returns(rollout, self.discount) for rollout in group.scored]
            longest = max((len(each) for each in returns), default=0)
            means = [float(np.mean([each[k] for each in returns if len(each) > k])) for k in range(longest)]
            for rollout, own in zip(group.scored, returns, strict=True):
                set_turn_advantages(rollout, [value - means[k] for k, value in enumerate(own)])
