"""Tokens are trained under another policy than wrote them: two engines that disagree, or weights that moved on."""

from __future__ import annotations

import math

from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_OUTSIDE = 0.01  # share of tokens whose probability engine and trainer see more than a tenth apart
_MISMATCH = 0.02  # mean |log ratio| of the same weights in two engines
_FAR = 0.1  # KL in nats per token between the policy that wrote and the one that is trained
_LEAST = 3  # steps


class OffPolicy(HealthRule):
    """A mismatch of engine and trainer is grave; staleness is told when KL reaches a tenth of a nat per token."""

    def judge(self, history: History) -> HealthFinding | None:
        outside = max((value for _, value in history.points("rescored_outside")), default=0.0)
        mismatch = history.late("mismatch", 1 / 2)
        if outside > _OUTSIDE or mismatch > _MISMATCH:
            told = "" if math.isnan(mismatch) else f", a mean |log ratio| of {mismatch:.3g}"
            evidence = f"the same weights give {outside:.1%} of the tokens another probability in the trainer{told}"
            remedy = "float32 for engine and trainer, no truncated sampling, or a correction (recipe tis: Truncated())"
            return HealthFinding("off-policy mismatch", evidence, remedy, is_grave=True)
        if any(name.startswith("trainer.view.") for name in history.settings):
            return None  # its losses read an estimate, which is off whoever wrote
        distance = history.late("kl_behavior", 1 / 2)
        if len(history.points("kl_behavior")) < _LEAST or not distance >= _FAR:
            return None
        evidence = (
            f"the trained policy is {distance:.2g} nats per token away from the one that wrote (lag "
            f"{history.late('lag', 1 / 2):.2g}, {history.number('epochs', 1):.0f} epochs of "
            f"{history.number('minibatches', 1):.0f} minibatches)"
        )
        return HealthFinding(
            "off-policy data", evidence, "lower lag, epochs, minibatches or learning_rate, or add a correction"
        )
