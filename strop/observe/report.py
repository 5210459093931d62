"""`report.html`: one self-contained page that says what a run did; written from the run folder, again at will."""

from __future__ import annotations

import base64
import hashlib
import math
import sqlite3
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from strop.disk.folder import RunFolder, read_rows
from strop.disk.ledger import Ledger
from strop.errors import StropError
from strop.observe.attempts_page import STYLE as STYLE_OF_ATTEMPTS
from strop.observe.attempts_page import readable
from strop.observe.attempts_page import shown as attempts_shown
from strop.observe.chart_choice import choose, points_of
from strop.observe.charts import cards, figure
from strop.observe.curriculum import curriculum_of
from strop.observe.curriculum_page import STYLE as STYLE_OF_LESSONS
from strop.observe.curriculum_page import section
from strop.observe.examination import examine
from strop.observe.facts import Facts, belief_of, read_facts
from strop.observe.groups import groups_of
from strop.observe.groups_page import STYLE as STYLE_OF_GROUPS
from strop.observe.groups_page import shown as groups_shown
from strop.observe.overlay import STYLE_OF_LINES
from strop.observe.page import SCRIPT, STYLE, TEMPLATE
from strop.observe.selection import selection_of
from strop.observe.summary import stages
from strop.observe.templates import compiled
from strop.observe.transcripts import Reader, telling
from strop.observe.verdicts import RunVerdict

STYLE_OF_SECTIONS = STYLE_OF_LINES + STYLE_OF_LESSONS + STYLE_OF_GROUPS + STYLE_OF_ATTEMPTS
_SAMPLES = 4  # attempts per column
_DRAWN = 64  # attempts among which they are chosen


_FATES = {
    "trained": "in an optimizer step",
    "gated": "left out by a gate",
    "waiting": "kept, not trained yet",
    "failed": "the world's fault: never a reward",
}


def write_report(folder: RunFolder) -> Path:
    """Write the report of a run, finished or not; returns its path."""
    folder.report.write_text(render(folder))
    return folder.report


def render(folder: RunFolder) -> str:
    """The page as text; everything a model or a task wrote is escaped."""
    facts = read_facts(folder)
    rows = _joined(read_rows(folder.metrics), read_rows(folder.timing))
    names = {name for row in rows for name in row}
    chosen = choose(names, lambda name: points_of(name, rows))
    return compiled(TEMPLATE).render(
        facts=facts,
        gain=_gain(facts),
        verdicts=_verdicts(folder),
        figures=_figures(facts),
        charts=chosen.sought,
        stages=_stages(folder),
        worlds=chosen.worlds,
        others=chosen.others,
        cards=partial(cards, steps=_span(rows)),
        source=folder.recipe.read_text() if folder.recipe.is_file() else "",
        style=Markup(STYLE + STYLE_OF_SECTIONS),
        script=Markup(SCRIPT),
        script_hash=base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
        version=_version(),
        path=folder.path,
        **_from_ledger(folder, facts),
    )


def _verdicts(folder: RunFolder) -> list[RunVerdict]:
    """What is wrong; a ledger that cannot be read is told further down."""
    try:
        return examine(folder)
    except (sqlite3.Error, StropError):
        return []


def _stages(folder: RunFolder) -> dict[str, Any] | None:
    """A table of held-out accuracies where there are several worlds: its columns and its rows."""
    names, worlds = stages(folder)
    if len(worlds) < 2 or len(names) < 2:
        return None
    cells = {label: [_shown(*found) for found in each] for label, each in worlds.items()}
    return {"names": names, "rows": list(cells.items())}


def _shown(value: float, low: float, high: float) -> tuple[str, str]:
    if not math.isfinite(value):
        return "–", ""
    return figure(value, True), f"{figure(low, True)} to {figure(high, True)}"


def _version() -> str:
    try:
        return version("strop")
    except PackageNotFoundError:
        return ""


def _joined(metrics: Sequence[dict[str, Any]], timing: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    times = {row["step"]: row for row in timing}
    return [{**times.get(row["step"], {}), **row} for row in metrics]


def _span(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The steps of every chart: the same for all, so that they can be read together."""
    steps = [row["step"] for row in rows] or [0]
    return min(steps), max(steps)


def _gain(facts: Facts) -> dict[str, Any] | None:
    """Before and after as words and as places on a scale from 0 to 100."""
    if facts.before is None:
        return None
    before, after = facts.before, facts.after
    low, high = (after or before)[1:]
    words = f"95% interval {figure(low, True)} to {figure(high, True)}"
    if after is not None:
        words = f"{100 * (after[0] - before[0]):+.0f} points, {words}"
    end = after[0] if after else before[0]
    return {
        "before": figure(before[0], True),
        "after": figure(after[0], True) if after else "",
        "words": words,
        "low": round(100 * low, 2),
        "width": round(100 * (high - low), 2),
        "left": round(100 * min(before[0], end), 2),
        "length": round(100 * abs(end - before[0]), 2),
        "start": round(100 * before[0], 2),
        "end": round(100 * end, 2),
        "direction": "down" if end < before[0] else "up",
    }


def _figures(facts: Facts) -> list[tuple[str, str]]:
    minutes = f"{facts.seconds / 60:.1f}" if facts.seconds >= 60 else f"{facts.seconds / 60:.2f}"
    memory = f"{facts.peak_bytes / 1e9:.2f} GB" if facts.peak_bytes else "–"
    return [
        ("Steps", f"{facts.step:,}"),
        ("Minutes", minutes),
        ("Attempts", f"{facts.attempts:,}"),
        ("Peak memory", memory),
        ("Tokens generated", short(facts.tokens_generated)),
        ("Tokens trained", short(facts.tokens_trained)),
        ("Tokens per second", f"{facts.tokens_generated / facts.seconds:,.0f}" if facts.seconds else "–"),
        ("Seed", str(facts.seed)),
    ]


def short(count: int) -> str:
    """1.23M, 45.6k, 789."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}" if count / size < 999.5 else f"{count / size:.0f}{letter}"
    return str(count)


def _from_ledger(folder: RunFolder, facts: Facts) -> dict[str, Any]:
    """Sample attempts, fates and whether the ledger's promises hold; empty where there is no ledger."""
    nothing: dict[str, Any] = {"samples": "", "fates": [], "ledger_words": "", "selection": None}
    nothing |= {"curriculum": "", "groups": ""}
    if not folder.ledger.is_file():
        return nothing
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        counts, broken, offered = ledger.counts(), ledger.violations(), ledger.offered()
        selection, curriculum = selection_of(offered), section(curriculum_of(offered), belief_of(folder.recipe))
        groups, skipped = groups_shown(groups_of(ledger)), ledger.num_skipped()
        rules = rules_of(folder)
        steps = sorted({step for step in (1, facts.step) if step > 0})
        reader = Reader.of_run(folder, facts.model)
        samples = [
            (f"step {s}", [readable(t, reader, rules) for t in telling(ledger.sample(s, _DRAWN), _SAMPLES)])
            for s in steps
        ]
    except sqlite3.Error as error:
        return {**nothing, "ledger_words": f"The ledger could not be read: {error}"}
    finally:
        ledger.close()
    proof = f"Broken promises: {'; '.join(broken)}." if broken else "Each has exactly one fate."
    if skipped:
        proof += f" {skipped:,} tasks were skipped: their prompts fill the context."
    return {
        "samples": attempts_shown([(title, attempts) for title, attempts in samples if attempts]),
        "fates": [(fate, counts[fate], meaning) for fate, meaning in _FATES.items() if counts.get(fate)],
        "ledger_words": f"{sum(counts.values()):,} attempts in the ledger. {proof}",
        "selection": selection if selection.trained else None,
        "curriculum": curriculum,
        "groups": groups,
    }


def rules_of(folder: RunFolder) -> dict[str, str]:
    """How answers are found in replies, by source of tasks."""
    origin = folder.read_origin() if folder.origin.is_file() else {}
    return {name: chosen["rule"] for name, chosen in origin.get("rules", {}).items()}
