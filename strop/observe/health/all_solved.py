"""The tasks are solved: nearly every rollout is right, so there is nothing left to learn from them."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_SOLVED = 0.8  # of the groups
_LEAST = 16  # groups
_KNOWN = 0.8  # held-out accuracy, where it is measured: a reward above 1 is no right answer


class Exhausted(HealthRule):
    """Four of five groups of the last third have nothing but right rollouts."""

    def judge(self, history: History) -> HealthFinding | None:
        groups = history.late_groups()
        solved = [group for group in groups if group.right >= group.tried - 1e-9 and not group.has_contrast]
        is_judged = not history.settings.get("rewards.0", "").endswith("Flat")
        is_known = all(row["heldout_high"] >= _KNOWN for row in history.measured[-1:])
        if len(groups) < _LEAST or len(solved) < _SOLVED * len(groups) or not is_judged or not is_known:
            return None
        made, tasks = history.tries
        often = f"; {made:,} groups came from {tasks:,} different tasks" if made > 2 * tasks > 0 else ""
        evidence = f"{len(solved)} of the last {len(groups)} groups were right in every rollout{often}"
        remedy = "stop here, or take harder tasks (a higher level, `strop recipes curriculum`)"
        return HealthFinding("data exhausted", evidence, remedy)
