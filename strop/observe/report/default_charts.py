"""Selection of a run's main charts and their titles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from strop.observe.report.svg_charts import Chart, Point

Points: TypeAlias = Callable[[str], tuple[Point, ...]]  # of a metric, by its name


@dataclass(frozen=True)
class Curve:
    """Main chart: the metrics it may show, of which the first that exists is taken, and its format."""

    title: str
    metrics: tuple[str, ...]
    note: str
    is_share: bool = False
    from_zero: bool = True
    tone: str = "plain"


CURVES = (
    Curve("Reward", ("reward",), "mean over the policy's own rollouts of a step"),
    Curve("Held-out accuracy", ("heldout",), "with its 95% interval", is_share=True, tone="strong"),
    Curve("Entropy", ("entropy",), "nats per token", from_zero=False),
    Curve("Length", ("length",), "tokens per rollout", from_zero=False),
    Curve("KL", ("reference_kl", "kl", "kl_behavior"), "nats per token"),
    Curve("Clipped share", ("clipped_share",), "tokens whose gradient the loss held", is_share=True),
    Curve(
        "Groups without contrast",
        ("no_contrast_share",),
        "its own rollouts rewarded alike: no signal",
        is_share=True,
    ),
    Curve("Tokens per second", ("tokens_per_second",), "generated, over the whole step"),
    Curve("Lag", ("lag",), "weight versions between writing and training"),
)
_KL_FROM = {
    "reference_kl": "nats per token, from the reference model",
    "kl": "nats per token, from the policy that wrote",
    "kl_behavior": "nats per token, from the policy that wrote",
}
# shown in another form, or the same for everybody
_TOTALS = {"rollouts", "tokens_generated", "tokens_trained", "tokens_advised"}
_NOT_CHARTED = {"step", "minutes", "heldout_low", "heldout_high", "seconds", *_TOTALS}


class ChosenCharts(NamedTuple):
    """Charts by their place on a page."""

    sought: list[Chart]  # those people look for
    envs: list[Chart]  # held-out accuracy of single environments
    others: list[Chart]


def choose(known: Iterable[str], points: Points) -> ChosenCharts:
    """Of the metrics that are known."""
    names = sorted(set(known) - _NOT_CHARTED)
    taken = {name for curve in CURVES for name in curve.metrics[:1]} | {"kl", "kl_behavior"} & set(names)
    sought = [chart for curve in CURVES if (chart := _of_curve(curve, points))]
    names = [name for name in names if not name.endswith(("_low", "_high"))]
    by_env = [name for name in names if name.startswith("heldout/")]
    envs = [Chart(n.removeprefix("heldout/"), p, "", True, tone="strong") for n in by_env if (p := points(n))]
    rest = [name for name in names if name not in taken and name not in by_env]
    return ChosenCharts(sought, envs, [Chart(n, p, from_zero=False) for n in rest if len(p := points(n)) > 1])


def _of_curve(curve: Curve, points: Points) -> Chart | None:
    for name in curve.metrics:
        if found := points(name):
            note = _KL_FROM.get(name, curve.note)
            return Chart(curve.title, found, note, curve.is_share, curve.from_zero, curve.tone)
    return None


def points_of(name: str, rows: Sequence[dict[str, Any]]) -> tuple[Point, ...]:
    """The values of a metric in rows that have it."""
    return tuple(point for row in rows if (point := point_of(name, row)) is not None)


def point_of(name: str, row: dict[str, Any]) -> Point | None:
    """A finite value; step 0 has no speed, since nothing was trained."""
    value = row.get(name)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if row["step"] <= 0 and not name.startswith("heldout"):
        return None
    return Point(row["step"], float(value), row.get(f"{name}_low"), row.get(f"{name}_high"))
