"""The loss holds back a large share of all tokens: the policy moves too far for its clip range."""

from __future__ import annotations

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_MUCH = 0.4  # of the tokens
_FAR = 0.02  # mean |log ratio|: a loss that clips whole completions holds many of them long before
_LEAST = 3  # steps


class Clipping(HealthRule):
    """Two fifths of the tokens and more, over the last half of the run, by a policy that moved far."""

    def judge(self, history: History) -> HealthFinding | None:
        held = history.late("clipped_share", 1 / 2)
        is_far = history.late("drift", 1 / 2) >= _FAR
        if len(history.points("clipped_share")) < _LEAST or not held >= _MUCH or not is_far:
            return None
        evidence = (
            f"{held:.0%} of the tokens of the last half were clipped and had no gradient (mean |log ratio| "
            f"{history.late('drift', 1 / 2):.3g}, lag {history.late('lag', 1 / 2):.2g})"
        )
        remedy = (
            "lower learning_rate, lag, epochs or minibatches; or widen the clip range if the loss is meant to move far"
        )
        return HealthFinding("clipping too much", evidence, remedy)
