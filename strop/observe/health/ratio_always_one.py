"""The ratio to the policy that sampled is always 1: whatever a loss makes of it never acts."""

from __future__ import annotations

from collections.abc import Mapping

from strop.catalogue.record import PACKAGE
from strop.observe.health import HealthFinding, HealthRule
from strop.observe.run_files.run_history import History

_SAME = 1e-4  # mean |log ratio|: rounding, and no distance
_ADVANTAGE = 0.01  # of a token: without any, weights have no reason to move
_LEAST = 3  # steps


class Inert(HealthRule):
    """No token of any step stood apart from the policy that sampled it, and the recipe counts on that it does."""

    def judge(self, history: History) -> HealthFinding | None:
        drifts = [value for _, value in history.points("drift")]
        if len(drifts) < _LEAST or max(drifts) > _SAME or not history.late("advantage", 1.0) > _ADVANTAGE:
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
