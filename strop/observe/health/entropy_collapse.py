"""The policy says the same thing every time, and it is not the right thing."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_LEFT = 0.2  # of the entropy at the beginning
_ALIKE = 0.5  # share of groups without contrast
_SOLVED = 0.9  # success at which certainty is what was wanted
_LEAST = 8  # steps


class EntropyCollapse(HealthRule):
    """Less than a fifth of the entropy is left and most groups have no contrast, while tasks are still failed."""

    def judge(self, history: History) -> HealthFinding | None:
        before, after = history.early("entropy"), history.late("entropy")
        alike = history.late("no_contrast_share")
        if len(history.steps) < _LEAST or not after < _LEFT * before or not alike >= _ALIKE:
            return None
        groups = history.late_groups(1 / 4)
        success = sum(group.right for group in groups) / max(sum(group.tried for group in groups), 1)
        if not groups or success >= _SOLVED:
            return None
        evidence = (
            f"entropy went from {before:.3g} to {after:.3g} nats per token and {alike:.0%} of the groups have no "
            f"contrast, with {success:.0%} of the rollouts right"
        )
        remedy = (
            "lower learning_rate, clip higher upwards (recipe dapo), add an entropy bonus or a KL price, and go back "
            "to a checkpoint before it fell"
        )
        return HealthFinding("entropy collapse", evidence, remedy, is_grave=True)
