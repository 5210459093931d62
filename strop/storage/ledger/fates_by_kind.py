"""Fates of rollouts by kind of task: how they ended, their rewards, and errors of the environment."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from strop.storage.ledger.untrusted_ledger import opened

_ENDED = "TOTAL(a.outcome = '{0}'), TOTAL(CASE WHEN a.outcome = '{0}' THEN a.reward END)"
_KINDS = (
    f"SELECT t.source, t.level, {_ENDED.format('finished')}, {_ENDED.format('truncated')}, "
    "TOTAL(a.outcome = 'failed'), TOTAL(a.outcome IN ('finished', 'truncated') AND a.error != ''), "
    "MAX(CASE WHEN a.outcome IN ('finished', 'truncated') THEN a.error ELSE '' END) "
    "FROM rollouts a JOIN tasks t ON t.id = a.task GROUP BY t.source, t.level ORDER BY t.source, t.level"
)
_ERRORS = (
    "SELECT t.source, t.level, a.error FROM rollouts a JOIN tasks t ON t.id = a.task WHERE a.outcome = 'failed' "
    "GROUP BY t.source, t.level, a.error ORDER BY COUNT(*)"
)
_TASKS = "SELECT COUNT(*), COUNT(DISTINCT task) FROM groups WHERE fate NOT IN ('running', 'skipped')"


@dataclass(frozen=True)
class KindFates:
    """Rollouts of one kind of task; `paid` is the sum of rewards of those that ended so."""

    source: str
    level: int
    finished: int
    paid_finished: float
    truncated: int
    paid_truncated: float
    failed: int
    error: str = ""  # the most frequent one
    overruns: int = 0  # completions that exhausted their scorer and count as wrong
    overrun: str = ""  # what one of them exhausted

    @property
    def name(self) -> str:
        return f"{self.source} level {self.level}"

    @property
    def rollouts(self) -> int:
        return self.finished + self.truncated + self.failed


def kinds_of(ledger: Path) -> list[KindFates]:
    """Every kind that was tried."""
    with closing(opened(ledger)) as database:
        errors = {(source, level): error for source, level, error in database.execute(_ERRORS)}
        return [
            KindFates(
                source,
                level,
                int(ended),
                paid,
                int(cut),
                paid_cut,
                int(failed),
                errors.get((source, level), ""),
                int(overruns),
                overrun,
            )
            for source, level, ended, paid, cut, paid_cut, failed, overruns, overrun in database.execute(_KINDS)
        ]


def tries_and_tasks(ledger: Path) -> tuple[int, int]:
    """How many groups were made, and of how many different tasks."""
    with closing(opened(ledger)) as database:
        ((groups, tasks),) = database.execute(_TASKS).fetchall()
    return int(groups), int(tasks)
