"""Imitate the decisions that a plan would make (2502.04576): ask where the label says help, act where it says act.

Reading: the paper trains a helper apart, offline, on labels of a process reward model; here the policy decides by its
own next reply, and chances are those counted in all attempts so far. Credit 1 for a turn whose decision is its label
and 0 for others makes a likelihood a supervised loss on labels: among acts it prefers none.
Papers: self-regulation
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.environments.bundled.ask_for_help import asks
from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.success import kind, success
from strop.training.arithmetic.help_plan import HelpTable, state_of
from strop.training.arithmetic.turn_returns import credit_turns
from strop.types import Group, Metrics, Trajectory


@dataclass
class HelpLabels(Advantage):
    """Labels of the best plan within `budget` helps of an attempt, over all attempts that were ever credited."""

    budget: float = 1.0  # helps of an attempt, in the mean

    _table: HelpTable = field(default_factory=HelpTable, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.budget < 0:
            raise ConfigurationError(f"HelpLabels needs budget >= 0, got {self.budget}")

    def __call__(self, groups: Sequence[Group]) -> None:
        attempts = [attempt for group in groups for attempt in group.scored]
        for attempt in attempts:
            self._table.add(kind(attempt.task), _decisions(attempt), success(attempt))
        labels = self._table.plan(self._table.price(self.budget)).asks
        for attempt in attempts:
            states = [state_of(kind(attempt.task), number) for number in range(len(attempt.turns))]
            pairs = zip(states, _decisions(attempt), strict=True)
            credit_turns(attempt, [float(labels[state] == is_help) for state, is_help in pairs])

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The price of help, how much is planned, how often it was asked for, and by the policy itself."""
        price = self._table.price(self.budget)
        plan = self._table.plan(price)
        asked = [turn for group in groups for attempt in group.scored for turn in attempt.turns if asks(turn.message)]
        count = max(sum(len(group.scored) for group in groups), 1)
        return {
            "help_price": price,
            "helps_planned": self._table.expected(plan),
            "help_states": sum(plan.asks.values()) / max(len(plan.asks), 1),
            "helps": len(asked) / count,
            "helps_own": sum(bool((turn.versions >= 0).any()) for turn in asked) / count,
        }

    def state(self) -> dict[str, Any]:
        return {"counts": self._table.counts}

    def restore(self, state: dict[str, Any]) -> None:
        self._table = HelpTable(state["counts"])


def _decisions(attempt: Trajectory) -> list[bool]:
    return [asks(turn.message) for turn in attempt.turns]
