"""Health rule about the mechanism of a recipe: its record names metrics under `Acts:`, which never left their neutral
values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strop.catalogue.acts import Acts, Metric, read_acts
from strop.catalogue.record import Record, read_record, recipe_files
from strop.observe.health import HealthFinding
from strop.observe.run_files.run_history import History
from strop.roles import HealthRule
from strop.storage.run_folder import WARMUP

_LEAST = 8  # steps of a run that is not over
_OUTCOME = "reward/outcome"  # of the environment: whether tasks are solved, not whether the mechanism acts
_LAGGING = ("lag", "staleness")
_SIZES = {"env", "steps", "groups_per_step", "group_size", "max_tokens", "temperature", "warmup_steps"}  # no period
_SAME = 1e-9


class NeverActed(HealthRule):
    """All metrics of the mechanism at their neutral values are grave, some of them are a note."""

    def judge(self, history: History) -> HealthFinding | None:
        record, steps = _record(history), len(history.steps)
        if record is None or history.is_warmup or steps < max(1, min(_LEAST, history.number("steps", _LEAST))):
            return None
        whole = read_acts(record.acts)
        acts = _asked(whole, is_warmed(history))
        rows = [*history.steps, *({f"{WARMUP}/{name}": value for name, value in row.items()} for row in history.before)]
        still = acts.at_rest(rows)
        if not still:
            return None
        is_whole = len(still) == len(acts.metrics)
        told = ", ".join(f"{metric.name} {_seen(metric, rows)}" for metric in still)
        reasons = "; ".join(_reasons(history, still, acts)) or "its files do not say why"
        if _of_warmup(whole) and not is_warmed(history):
            reasons += "; there was no warm-up: warmup_steps=20 shows the model demonstrations first"
        name = "the mechanism never acted" if is_whole else "a part of the mechanism never acted"
        remedy = f"`strop papers {record.key}` says what it needs, `strop show` what its rollouts did"
        return HealthFinding(name, f"in {steps} step{'s' * (steps > 1)} {told}; {reasons}", remedy, is_grave=is_whole)


def _record(history: History) -> Record | None:
    """Of the recipe that made the run; a warm-up is judged with the run that it belongs to."""
    name = ast.literal_eval(history.settings.get("recipe", "''"))
    path = recipe_files().get(name)
    found = read_record(path) if path is not None else None
    return found if found is not None and found.acts else None


def is_warmed(history: History) -> bool:
    """Whether the run has a warm-up."""
    return history.settings.get("warmup", "None") != "None" or any(
        name.startswith("warmup.") for name in history.settings
    )


def _asked(whole: Acts, is_warmed: bool) -> Acts:
    """What the record says, less what this run has no part for."""
    left_out = set() if is_warmed else set(_of_warmup(whole))
    return Acts(tuple(m for m in whole.metrics if m.name != _OUTCOME and m not in left_out), whole.fields)


def _of_warmup(acts: Acts) -> list[Metric]:
    return [metric for metric in acts.metrics if metric.name.startswith(f"{WARMUP}/")]


def _seen(metric: Metric, rows: Sequence[Mapping[str, Any]]) -> str:
    values = metric.values(rows)
    if not values:
        return "was never reported"
    low, high = min(values), max(values)
    return f"stayed at {low:.3g}" if high - low < _SAME else f"stayed between {low:.3g} and {high:.3g}"


def _reasons(history: History, still: Sequence[Metric], acts: Acts) -> Iterator[str]:
    """What the files of the run tell of the cause."""
    yield from _of_groups(history)
    if any(metric.name in _LAGGING for metric in still) and not history.number("admission.lag", 0):
        yield "lag=0: generation never ran ahead of training"
    if refused := _totals(history, "refused/"):
        told = ", ".join(f"{count:.0f} {name}" for name, count in refused.items())
        yield f"of the tasks that were written, these were refused: {told}"
    if (unread := history.late("unread_share", 1.0)) > 0:
        yield f"what the judge wrote about {unread:.0%} of the rollouts could not be read"
    if history.points("advantage") and max(value for _, value in history.points("advantage")) < _SAME:
        yield "every advantage was 0, so no weight moved"
    if acts.fields and len(history.steps) < _LEAST:
        periods = [f"{name}={value}" for name, value in acts.fields.items() if name not in _SIZES]
        yield from [f"so short a run may need {' '.join(periods)}"] * bool(periods)


def _of_groups(history: History) -> Iterator[str]:
    """How many groups were solved, lost and in between, where the policy made rollouts of its own."""
    groups = [group for group in history.groups if group.tried > 0]
    alike = [group for group in history.groups if group.rollouts > 1 and not group.has_contrast]
    if groups:
        solved = sum(group.right >= group.tried - _SAME for group in groups)
        lost = sum(group.right <= _SAME for group in groups)
        yield f"of {len(groups)} groups {solved} were all right and {lost} all wrong"
    if alike and len(alike) == len(history.groups):
        yield "every rollout of a group had the same reward as its siblings"


def _totals(history: History, prefix: str) -> dict[str, float]:
    """Sums over all steps of the metrics whose names begin so."""
    names = sorted({name for row in history.steps for name in row if name.startswith(prefix)})
    return {name.removeprefix(prefix): sum(value for _, value in history.points(name)) for name in names}
