"""Most groups are failed by all their rollouts alike: they cost tokens and teach nothing."""

from __future__ import annotations

import math

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_MANY = 0.7  # of the groups
_NOTHING = 0.95
_ADVANTAGE = 0.5  # of a token, where groups with contrast give about 1
_LEAST = 10  # steps, as the warning while a run goes on has them


class NoContrast(HealthRule):
    """Seven of ten groups in the last quarter; groups that are all right are another story, see `Exhausted`."""

    def judge(self, history: History) -> HealthFinding | None:
        alike = history.late("no_contrast_share/all")
        alike = history.late("no_contrast_share") if math.isnan(alike) else alike
        if len(history.steps) < _LEAST or not alike >= _MANY or not self._teaches_little(history):
            return None
        flat = [group for group in history.late_groups(1 / 4) if not group.has_contrast]
        wrong = sum(group.right <= 0.5 * group.tried for group in flat)
        if not flat or 2 * wrong < len(flat):
            return None
        evidence = (
            f"{alike:.0%} of the groups of the last quarter were rewarded alike, {wrong} of {len(flat)} of them with "
            f"nothing right (mean reward {history.late('reward'):.3g})"
        )
        remedy = (
            "easier tasks, more rollouts of each (group_size), a sampler that looks for tasks of middling "
            "probability, or "
            "longer completions; if completions look right, see how their answers are read (`answer=`)"
        )
        return HealthFinding("groups without contrast", evidence, remedy, is_grave=alike >= _NOTHING)

    def _teaches_little(self, history: History) -> bool:
        """Whoever compares siblings gives no advantage then, or has a gate that drops such groups."""
        return history.late("advantage") < _ADVANTAGE or history.late("dropped_groups") > 0
