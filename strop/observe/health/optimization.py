"""Health rules about optimization: clipping, entropy collapse, ratios that are always one, off-policy data."""

from __future__ import annotations

import math
from collections.abc import Mapping

from strop.catalogue.record import PACKAGE
from strop.observe.health import HealthFinding
from strop.observe.run_files.run_history import History
from strop.roles import HealthRule

# The loss holds back a large share of all tokens: the policy moves too far for its clip range.

_MUCH = 0.4  # of the tokens
_FAR = 0.02  # mean |log ratio|: a loss that clips whole completions holds many of them long before
_LEAST = 3  # steps


class Clipping(HealthRule):
    """Two fifths of the tokens or more are clipped over the last half of the run, and the policy has moved far."""

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


# The policy says the same thing every time, and it is not the right thing.

_LEFT = 0.2  # of the entropy at the beginning
_ALIKE = 0.5  # share of groups without contrast
_SOLVED = 0.9  # success at which certainty is what was wanted
_ENTROPY_COLLAPSE_LEAST = 8  # steps


class EntropyCollapse(HealthRule):
    """Less than a fifth of the entropy is left and most groups have equal rewards, while tasks still fail."""

    def judge(self, history: History) -> HealthFinding | None:
        before, after = history.early("entropy"), history.late("entropy")
        alike = history.late("no_contrast_share")
        if len(history.steps) < _ENTROPY_COLLAPSE_LEAST or not after < _LEFT * before or not alike >= _ALIKE:
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


# Tokens are trained under another policy than wrote them: two engines that disagree, or weights that moved on.

_OUTSIDE = 0.01  # share of tokens whose probability engine and trainer see more than a tenth apart
_MISMATCH = 0.02  # mean |log ratio| of the same weights in two engines
_OFF_POLICY_FAR = 0.1  # KL in nats per token between the policy that wrote and the one that is trained
_OFF_POLICY_LEAST = 3  # steps


class OffPolicy(HealthRule):
    """Mismatch between engine and trainer is grave; staleness is reported when KL reaches a tenth of a nat per
    token.
    """

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
        if len(history.points("kl_behavior")) < _OFF_POLICY_LEAST or not distance >= _OFF_POLICY_FAR:
            return None
        evidence = (
            f"the trained policy is {distance:.2g} nats per token away from the one that wrote (lag "
            f"{history.late('lag', 1 / 2):.2g}, {history.number('epochs', 1):.0f} epochs of "
            f"{history.number('minibatches', 1):.0f} minibatches)"
        )
        return HealthFinding(
            "off-policy data", evidence, "lower lag, epochs, minibatches or learning_rate, or add a correction"
        )


# The ratio to the policy that sampled is always 1: whatever a loss makes of it never acts.

_SAME = 1e-4  # mean |log ratio|: rounding, and no distance
_ADVANTAGE = 0.01  # of a token: without any, weights have no reason to move
_RATIO_ALWAYS_ONE_LEAST = 3  # steps


class Inert(HealthRule):
    """All ratios are one in every step, in a recipe that depends on ratios other than one."""

    def judge(self, history: History) -> HealthFinding | None:
        drifts = [value for _, value in history.points("drift")]
        if (
            len(drifts) < _RATIO_ALWAYS_ONE_LEAST
            or max(drifts) > _SAME
            or not history.late("advantage", 1.0) > _ADVANTAGE
        ):
            return None
        moves = max(history.number(name, 1) for name in ("minibatches", "epochs")) > 1 or history.number(
            "admission.lag", 0
        )
        names = _saying(history.settings, "losses", "needs_distance")
        if not (names or moves) or _saying(history.settings, "trainer", "makes_several"):
            return None
        evidence = (
            f"the mean |log ratio| to the policy that sampled was at most {max(drifts):.1g} in {len(drifts)} steps"
        )
        if moves:
            evidence += ", although lag, minibatches or epochs let weights move between sampling and training"
            return HealthFinding(
                "an objective that cannot act", evidence, "raise learning_rate: weights hardly move", True
            )
        evidence += f", so {', '.join(names)} is a plain policy gradient under another name"
        return HealthFinding("an objective that cannot act", evidence, "set minibatches=4, epochs=2 or lag=1", True)


def _saying(settings: Mapping[str, str], role: str, fact: str) -> list[str]:
    """The parts of a run that say this of themselves; their files are read, not imported."""
    names = {value for path, value in settings.items() if path == role or path.rpartition(".")[0] == role}
    files = sorted(path for room in ("training", "recipes") for path in (PACKAGE / room).rglob("*.py"))
    texts = [text for path in files if f"{fact}: ClassVar[bool] = True" in (text := path.read_text())]
    return [name for name in sorted(names) for text in texts if f"class {name}(" in text]
