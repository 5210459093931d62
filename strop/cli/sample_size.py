"""Tables of `strop eval`: difference of two models over the same tasks, and tasks needed to detect a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from strop.evaluation import Score
from strop.stats.intervals import Difference, over_tasks
from strop.stats.sample_size import Kind, TaskSpread, spread_of

if TYPE_CHECKING:
    from strop.cli.commands.evaluate import EvaluationRequest

_ROLLOUTS = (1, 2, 4, 8, 16, 32)
_MEANT: dict[Kind, str] = {
    "even": "same tasks, equal gain on every task",
    "uneven": "same tasks, gain on as few as possible",
    "different": "different tasks for each model",
}


def differences(scores: list[Score], others: list[Score]) -> dict[str, Difference]:
    """Difference per environment, and over all tasks together."""
    names = [f"{score.source} level {score.level}" for score in scores]
    pairs = [(score.shares, other.shares) for score, other in zip(scores, others, strict=True)]
    found = {name: over_tasks(*pair) for name, pair in zip(names, pairs, strict=True)}
    if len(pairs) > 1:
        joined = [[share for pair in pairs for share in pair[side]] for side in (0, 1)]
        found["all"] = over_tasks(joined[0], joined[1])
    return found


def against_table(request: EvaluationRequest, scores: list[Score], others: list[Score]) -> Group:
    """One row per environment: the difference in points with its interval."""
    title = Text(f"{request.model} minus {request.against}, paired by task")
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("env", "points", "95%"):
        table.add_column(name, justify="left" if name == "env" else "right")
    for name, found in differences(scores, others).items():
        colour = "green" if found.low > 0 else ("red" if found.high < 0 else "default")
        interval = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
        table.add_row(escape(name), f"[{colour}]{100 * found.mean:+.1f}[/]", interval)
    return Group(title, table)


def spread_over(scores: list[Score]) -> TaskSpread:
    """Spread of pass rates over all measured tasks."""
    pairs = [pair for score in scores for pair in zip(score.right, score.counted, strict=True)]
    return spread_of([right for right, _ in pairs], [counted for _, counted in pairs])


def planned(gain: float, spread: TaskSpread) -> dict[Kind, dict[str, int]]:
    """Number of tasks needed, by rollouts per task, for each kind of difference."""
    return {kind: {str(k): spread.tasks(gain, k, kind) for k in _ROLLOUTS} for kind in _MEANT}


def plan_text(gain: float, spread: TaskSpread, tasks: int, rollouts: int) -> Group:
    """The plan as a table, and the difference that the measured tasks can detect."""
    head = f"tasks needed to detect a difference of {100 * gain:g} points (95% interval, 80% power):"
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("rollouts per task")
    for k in _ROLLOUTS:
        table.add_column(str(k), justify="right")
    for name, counts in planned(gain, spread).items():
        table.add_row(_MEANT[name], *(f"{count:,}" for count in counts.values()))
    shown = (
        f"{tasks:,} tasks with {rollouts} rollouts each detect {100 * spread.gain(tasks, rollouts):.1f} points or more"
    )
    return Group(head, table, shown)
