"""Tasks that came again and again are known by heart, and held-out ones are not solved."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_TIMES = 4  # that each task was tried
_GAP = 0.1  # between success in training and the upper end of the held-out interval


class Memorised(HealthRule):
    """Every task was tried four times or more, and success on them is a tenth above the interval of held-out ones."""

    def judge(self, history: History) -> HealthFinding | None:
        (made, tasks), measured, groups = history.tries, history.measured, history.late_groups(1 / 4)
        if not tasks or made < _TIMES * tasks or len(measured) < 2 or "evaluation.envs.0" in history.settings:
            return None
        success = sum(group.right for group in groups) / max(sum(group.tried for group in groups), 1)
        begin, end = measured[0], measured[-1]
        if not groups or success < end["heldout_high"] + _GAP or success - end["heldout"] < _GAP + begin["heldout"]:
            return None
        evidence = (
            f"each of {tasks:,} tasks was tried {made / tasks:.0f} times; {success:.0%} of the last rollouts of them "
            f"were right, and {end['heldout']:.0%} of held-out ones (at most {end['heldout_high']:.0%} at 95%)"
        )
        return HealthFinding("tasks known by heart", evidence, "more different tasks, fewer steps, or a KL price")
