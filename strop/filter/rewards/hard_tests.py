"""HardTests (2505.24098): programs are paid where they pass all tests that were written and agreed on for their task.

Papers: hardtests
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from strop.environments.code_execution import Cases, Trials, cases_of
from strop.filter.agreed_tests import AgreedTests
from strop.filter.judges.batch_ask import all_of
from strop.roles import Reward
from strop.success import is_right
from strop.types import Group, Metrics, Task, Trajectory

_KEPT, _PASSED = "tests_kept", "passes_written"  # facts
_MOST = 512  # tasks whose tests are remembered: the same ones are written again, only later


@dataclass
class HardTests(Reward):
    """1 where a program passes every one of `tests`, else 0; its verdicts are compared with what the world paid."""

    tests: AgreedTests
    trials: Trials = field(default_factory=Trials)
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and the box does the work
    _known: dict[str, tuple[Cases, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def __call__(self, group: Group) -> list[float]:
        if not group.trajectories:
            return []
        cases, written = await self._cases(group.task)
        return await all_of(self._mark(attempt, cases, written) for attempt in group.trajectories)

    async def _cases(self, task: Task) -> tuple[Cases, int]:
        if task.id not in self._known:
            found = await self.tests(task, cases_of(task).function, self.trials)
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[task.id] = found
        return self._known[task.id]

    async def _mark(self, attempt: Trajectory, cases: Cases, written: int) -> float:
        trial = await self.trials.of(attempt.reply, cases)
        attempt.facts |= {_KEPT: len(cases.inputs) / written, _PASSED: float(trial.is_right)}
        return float(trial.is_right)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how well written tests tell right programs from wrong ones, where that can be said."""
        both = [
            (attempt.facts[_PASSED] > 0, is_right(sum(attempt.turn_rewards)))
            for group in groups
            for attempt in group.scored
            if _PASSED in attempt.facts
        ]
        return told(both)


def told(both: Sequence[tuple[bool, bool]]) -> Metrics:
    """Precision and recall of (passes, is right); 0 of 0 is missing."""
    hits = sum(passes and right for passes, right in both)
    counts = {"test_precision": sum(passes for passes, _ in both), "test_recall": sum(right for _, right in both)}
    return {name: hits / count for name, count in counts.items() if count}
