"""Summary of a run and its results (summary.json)."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from strop.observe.examine import examine
from strop.observe.metrics.curriculum import curriculum_of
from strop.observe.metrics.selection_bias import selection_of
from strop.observe.metrics.tokens_to_target import area, curve, tokens_to
from strop.observe.run_files.best_checkpoint import read_best
from strop.observe.run_files.jsonl_journals import gain_of
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import WARMUP, RunFolder, read_rows

if TYPE_CHECKING:
    from strop.run import Run

Interval: TypeAlias = list[float]  # estimate, low, high
_BY_ENV = "heldout/"


def summarize(run: Run, folder: RunFolder, step: int, is_complete: bool) -> dict[str, Any]:
    """Write the summary; returns it."""
    heldout = _heldout_rows(folder)
    usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    last = heldout[-1] if heldout else {}
    summary = {
        "recipe": run.recipe,
        "seed": run.seed,
        "steps": step,
        "is_complete": is_complete,
        "seconds": sum(row["seconds"] for row in read_rows(folder.timing)),
        "heldout_before": heldout[0]["heldout"] if heldout else None,
        "heldout_after": last.get("heldout"),
        "heldout_after_low": last.get("heldout_low"),
        "heldout_after_high": last.get("heldout_high"),
        "heldout_truncated": last.get("heldout_truncated"),
        **_counted(folder),
        "peak_rss_bytes": max(usage) * (1 if sys.platform == "darwin" else 1024),
        **_on_the_way(folder, run.evaluation.target),
        "heldout_gain": None if (gain := gain_of(folder)) is None else asdict(gain),
        "best": None if (best := read_best(folder)) is None else {**asdict(best), "bias": best.bias},
        **_from_ledger(folder),
        "folder": str(folder.path),
        **_of_warmup(folder),
    }
    _write(folder, summary)  # which the finding on seeds reads beside others
    summary["findings"] = _findings(folder)
    _write(folder, summary)
    return summary


def _write(folder: RunFolder, summary: dict[str, Any]) -> None:
    """Whole or not at all, whenever the run is killed."""
    building = folder.summary.with_suffix(".building")
    building.write_text(json.dumps(summary, indent=1) + "\n")
    building.rename(folder.summary)


def _counted(folder: RunFolder) -> dict[str, int]:
    """Totals as the last step wrote them, so that every page says the same; what came after it was not trained on."""
    rows = read_rows(folder.metrics)
    names = ("tokens_generated", "tokens_trained", "tokens_advised", "rollouts")
    return {name: int(rows[-1].get(name, 0)) if rows else 0 for name in names}


def stages(folder: RunFolder) -> tuple[list[str], dict[str, list[Interval]]]:
    """Held-out accuracy at each turning point: their names, and by environment an interval for each of them."""
    before, rows = _heldout_rows(_warmup(folder)), _heldout_rows(folder)
    ends = [rows[0], rows[-1]] if len(rows) > 1 else rows
    named = list(zip(("before", "after"), ends, strict=False))
    if before:
        names = ("after the warm-up", "after")
        named = [("before the warm-up", before[0]), *zip(names, ends or before[1:][-1:], strict=False)]
    envs = dict.fromkeys(_label(name) for _, row in named for name in row if _is_of_env(name))
    found = {label: [_interval(row, key) for _, row in named] for label, key in _keys(envs, named).items()}
    return [name for name, _ in named], found


def _keys(envs: dict[str, None], named: list[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """Metric by label: all trained environments, those never trained on, and each."""
    rows = [row for _, row in named]
    totals = {"trained": "heldout", "never trained on": "unseen"}
    shown = {label: key for label, key in totals.items() if any(key in row for row in rows)}
    return shown | {label: f"{_BY_ENV}{label}" for label in envs}


def _is_of_env(name: str) -> bool:
    return name.startswith(_BY_ENV) and not name.endswith(("_low", "_high"))


def _label(name: str) -> str:
    return name.removeprefix(_BY_ENV)


def _interval(row: dict[str, Any], key: str) -> Interval:
    value = float(row.get(key, float("nan")))
    return [value, float(row.get(f"{key}_low", value)), float(row.get(f"{key}_high", value))]


def _heldout_rows(folder: RunFolder) -> list[dict[str, Any]]:
    return [row for row in read_rows(folder.metrics) if "heldout" in row]


def _warmup(folder: RunFolder) -> RunFolder:
    return RunFolder(folder.path / WARMUP)


def _of_warmup(folder: RunFolder) -> dict[str, Any]:
    """What the warm-up was, and how every environment fared at each turning point."""
    names, envs = stages(folder)
    found: dict[str, Any] = {"stages": names, "heldout_by_env": envs} if len(envs) > 1 else {}
    if _warmup(folder).summary.is_file():
        kept = ("steps", "seconds", "tokens_trained", "heldout_before", "heldout_after")
        whole = json.loads(_warmup(folder).summary.read_text())
        found["warmup"] = {name: whole[name] for name in kept}
    return found


def _from_ledger(folder: RunFolder) -> dict[str, Any]:
    """The curriculum, and how what was trained differs from what was offered; a large difference is said aloud."""
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        offered = ledger.offered()
    finally:
        ledger.close()
    selection = selection_of(offered)
    for warning in selection.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return {"selection_bias": selection.plain(), **curriculum_of(offered).plain()}


def _findings(folder: RunFolder) -> list[dict[str, Any]]:
    """What is wrong with the run is said aloud, too."""
    found = examine(folder)
    for finding in found:
        print(f"{'warning' if finding.is_grave else 'note'}: {finding}", file=sys.stderr)
    return [asdict(finding) for finding in found]


def _on_the_way(folder: RunFolder, target: float | None) -> dict[str, Any]:
    """Mean held-out accuracy over sampled tokens, and when it reached the target, where there is one."""
    found = curve(folder, "heldout")
    if not found[0]:
        return {}
    when = {} if target is None else {"target": target, "tokens_to_target": tokens_to(found, target)}
    return {"heldout_area": area(found), **when}


def warmup_harm(summary: Mapping[str, Any]) -> str:
    """A sentence where held-out accuracy fell in the warm-up by more than its interval explains."""
    gain = summary.get("heldout_gain")
    if gain is None or gain["high"] >= 0:
        return ""
    return (
        f"the supervised warm-up lowered held-out accuracy from {summary['heldout_before']:.1%} to "
        f"{summary['heldout_after']:.1%}: warmup_steps=0 leaves it out"
    )
