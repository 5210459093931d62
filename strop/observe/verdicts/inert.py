"""The ratio to the policy that sampled is always 1: whatever a loss makes of it never acts."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from strop.catalogue.record import PACKAGE
from strop.observe.history import History
from strop.observe.verdicts import HealthRule, RunVerdict

_SAME = 1e-4  # mean |log ratio|: rounding, and no distance
_LEAST = 3  # steps


class Inert(HealthRule):
    """No token of any step stood apart from the policy that sampled it, and the recipe counts on that it does."""

    def judge(self, history: History) -> RunVerdict | None:
        drifts = [value for _, value in history.points("drift")]
        if len(drifts) < _LEAST or max(drifts) > _SAME:
            return None
        moves = max(history.number(name, 1) for name in ("minibatches", "epochs")) > 1 or history.number("pace.lag", 0)
        names = _by_distance(history.settings)
        if not names and not moves:
            return None
        evidence = (
            f"the mean |log ratio| to the policy that sampled was at most {max(drifts):.1g} in {len(drifts)} steps"
        )
        if moves:
            evidence += ", although lag, minibatches or epochs let weights move between sampling and training"
            return RunVerdict(
                "an objective that cannot act", evidence, "raise learning_rate: weights hardly move", True
            )
        evidence += f", so {', '.join(names)} is a plain policy gradient under another name"
        return RunVerdict("an objective that cannot act", evidence, "set minibatches=4, epochs=2 or lag=1", True)


def _by_distance(settings: Mapping[str, str]) -> list[str]:
    """The losses of a run that say of themselves that they need a distance; their files are read, not imported."""
    names = {value for path, value in settings.items() if path.startswith("losses.") and path.count(".") == 1}
    kinds = [
        node
        for path in sorted((PACKAGE / "training" / "losses").rglob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name in names
    ]
    return [kind.name for kind in kinds if any(_says(line, "needs_distance") for line in kind.body)]


def _says(line: ast.stmt, name: str) -> bool:
    return (
        isinstance(line, ast.AnnAssign)
        and ast.unparse(line.target) == name
        and ast.unparse(line.value or line) == "True"
    )
