"""Counts of groups dropped since the last step, by gate and by behaviour of the policy, to explain a starved run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from strop.types import GateResult, Group

_PATIENCE = 50  # batches' worth of groups, before a run that gets no others is called starved
_SHOWN = 3  # reasons of a gate that are told


@dataclass
class Dropped:
    """Dropped groups by reason; those dropped on purpose end a run only if nothing else has come for long."""

    gates: dict[str, Counter[str]] = field(default_factory=dict)  # by the name of the gate, then by reason
    on_purpose: Counter[str] = field(default_factory=Counter)  # by reason, with nothing else between them
    right: int = 0  # groups in which all own rollouts were right, and were dropped
    wrong: int = 0
    num_seen: int = 0  # whatever became of them, in the whole run

    def add(self, group: Group, gate_result: GateResult) -> None:
        """Hear what became of a group, kept or not."""
        self.num_seen += 1
        if gate_result.is_meant:
            self.on_purpose[gate_result.reason] += 1
            return
        self.on_purpose.clear()
        if gate_result.group is None:
            self.leave_out(gate_result.by, gate_result.reason)
            solved = [rollout.success > 0.5 for rollout in group.own if rollout.success is not None]
            self.right += bool(solved) and all(solved)
            self.wrong += bool(solved) and not any(solved)

    def leave_out(self, by: str, reason: str) -> None:
        """One that no gate has seen, or that a gate dropped."""
        self.gates.setdefault(by, Counter())[reason] += 1

    def clear(self) -> None:
        """A step was made."""
        self.gates.clear()
        self.on_purpose.clear()
        self.right = self.wrong = 0

    @property
    def count(self) -> int:
        """Of groups that nobody meant to lose."""
        return sum(reasons.total() for reasons in self.gates.values())

    def is_too_many(self, groups_per_step: int) -> bool:
        return max(self.count, self.on_purpose.total()) > _PATIENCE * groups_per_step

    def told(self) -> str:
        """Why there is nothing to train on, with the numbers and what would help."""
        told = []
        if self.gates:
            by_gate = [f"{name or 'others'} {each.total()} ({_listed(each)})" for name, each in self.gates.items()]
            told.append(f"{self.count} groups were dropped meanwhile: {', '.join(by_gate)}{self._alike()}")
        if self.on_purpose:
            told.append(
                f"the last {self.on_purpose.total()} groups were left out on purpose ({_listed(self.on_purpose)}): "
                "some task has to be tried and kept"
            )
        return "; ".join(told) or "nothing is running"

    def _alike(self) -> str:
        if not self.right + self.wrong:
            return ""
        remedy = (
            "harder tasks" if self.right > self.wrong else "easier tasks, more rollouts of each or longer completions"
        )
        return (
            f". All of the policy's own rollouts were right in {self.right} of them and wrong in {self.wrong}: "
            f"the run needs {remedy}"
        )


def _listed(reasons: Counter[str]) -> str:
    return ", ".join(f"{count}x {reason}" for reason, count in reasons.most_common(_SHOWN))
