"""Many rollouts are cut before they end: what they would have said is never judged."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_MANY = 0.3  # of the rollouts
_MOST = 0.7
_LEAST = 3  # steps


class ManyTruncated(HealthRule):
    """Three of ten in the last quarter; seven of ten are grave."""

    def judge(self, history: History) -> HealthFinding | None:
        before, cut = history.early("truncated_share"), history.late("truncated_share")
        if len(history.points("truncated_share")) < _LEAST or not cut >= _MANY:
            return None
        if history.cut_by == "design":
            return None  # a part that asks for less than a completion
        if history.cut_by == "turns":
            most = history.number("agent.max_turns", 0)
            told = f"{cut:.0%} of the last rollouts ran out of turns (max_turns={most:.0f})"
            return HealthFinding(
                "too many truncated", told, "more turns, or an environment that ends when a task is done"
            )
        limits = [
            f"max_tokens={history.number('sampling.max_tokens', 0):.0f}",
            f"context={history.number('context', 0):.0f}",
        ]
        evidence = f"{cut:.0%} of the last rollouts were cut ({before:.0%} of the first) at {' and '.join(limits)}"
        remedy = (
            "raise max_tokens (and context), or price length; if no completion ever ends, look at the chat template"
        )
        return HealthFinding("too many truncated", evidence, remedy, is_grave=cut >= _MOST)
