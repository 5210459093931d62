"""Rollouts that were cut earn as much as those that came to their end: the reward does not need an end."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_LEAST = 20  # rollouts that were cut, and that were not
_SHARE = 0.05  # of all
_NEARLY = 0.9  # of what finished ones earn


class PaidThoughCut(HealthRule):
    """Nine tenths of the mean reward of finished rollouts, over the whole run."""

    def judge(self, history: History) -> HealthFinding | None:
        cut, ended = sum(kind.truncated for kind in history.kinds), sum(kind.finished for kind in history.kinds)
        if min(cut, ended) < _LEAST or cut < _SHARE * (cut + ended):
            return None
        paid_cut = sum(kind.paid_truncated for kind in history.kinds) / cut
        paid = sum(kind.paid_finished for kind in history.kinds) / ended
        if paid_cut <= 0 or paid_cut < _NEARLY * paid:
            return None
        evidence = (
            f"{cut:,} rollouts that were cut earned {paid_cut:.3g} on average, and {ended:,} that ended {paid:.3g}"
        )
        remedy = (
            "pay the end of a completion only (an answer behind the last line), leave cut rollouts out, "
            "or raise max_tokens"
        )
        return HealthFinding("truncated ones rewarded", evidence, remedy)
