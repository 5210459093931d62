"""When is help worth its price? A table of what followed each decision, and the best plan under a budget (2502.04576).

J(s) = max(E[J(s') | act], E[J(s') | help] - price), at the end J is the success; a tie is an act. U(s) is the number of
helps to expect under that plan. U falls in steps as the price rises, so the price is the smallest with U <= budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from strop.errors import ConfigurationError

Counts: TypeAlias = dict[str, dict[str, dict[str, float]]]  # times by state, decision, and what came next

ACT, ASK = "act", "help"
_RIGHT, _WRONG = "right", "wrong"  # ends
_HALVINGS = 50


@dataclass(frozen=True)
class HelpPlan:
    """By state: whether to ask, what it is worth and how many helps to expect."""

    asks: Mapping[str, bool]
    worth: Mapping[str, float]
    helps: Mapping[str, float]


@dataclass
class HelpTable:
    """Transitions of attempts; a state is a kind of task and the number of turns taken: no plan runs in circles."""

    counts: Counts = field(default_factory=dict)

    def add(self, kind: str, decisions: list[bool], success: float) -> None:
        """An attempt: whether help was asked for in each turn, and how right it was in the end, from 0 to 1."""
        for number, is_help in enumerate(decisions):
            is_last = number == len(decisions) - 1
            ends = {_RIGHT: success, _WRONG: 1.0 - success} if is_last else {state_of(kind, number + 1): 1.0}
            row = self.counts.setdefault(state_of(kind, number), {}).setdefault(ASK if is_help else ACT, {})
            for name, times in ends.items():
                row[name] = row.get(name, 0.0) + times

    def plan(self, price: float) -> HelpPlan:
        """From the last turn to the first; a decision that was never seen is never taken."""
        asks = dict[str, bool]()
        worth, helps = {_RIGHT: 1.0, _WRONG: 0.0}, {_RIGHT: 0.0, _WRONG: 0.0}
        for state in sorted(self.counts, key=_turn_of, reverse=True):
            rows = self.counts[state]
            values = {each: _mean(row, worth) - (price if each == ASK else 0.0) for each, row in rows.items()}
            asks[state] = values.get(ASK, float("-inf")) > values.get(ACT, float("-inf"))
            chosen = ASK if asks[state] else ACT
            worth[state] = values[chosen]
            helps[state] = _mean(rows[chosen], helps) + float(asks[state])
        return HelpPlan(asks, worth, helps)

    def price(self, budget: float) -> float:
        """The smallest price at which no more than `budget` helps are expected of an attempt, to 50 binary places."""
        if budget < 0:
            raise ConfigurationError(f"a budget of helps is at least 0, got {budget}")
        low, high = 0.0, 1.0  # help is worth 1 at most
        if self.expected(self.plan(low)) <= budget:
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self.expected(self.plan(middle)) <= budget:
                high = middle
            else:
                low = middle
        return high

    def expected(self, plan: HelpPlan) -> float:
        """Helps of an attempt, over all first states as often as they were seen."""
        first = {state: _times(self.counts[state]) for state in self.counts if _turn_of(state) == 0}
        total = sum(first.values())
        return sum(times * plan.helps[state] for state, times in first.items()) / total if total else 0.0


def state_of(kind: str, turn: int) -> str:
    return f"{kind}/{turn}"


def _turn_of(state: str) -> int:
    return int(state.rpartition("/")[2])


def _times(rows: Mapping[str, Mapping[str, float]]) -> float:
    return sum(sum(row.values()) for row in rows.values())


def _mean(row: Mapping[str, float], values: Mapping[str, float]) -> float:
    return sum(times * values[name] for name, times in row.items()) / sum(row.values())
