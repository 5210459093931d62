"""History of a run for health rules: metrics by step, settings, and sums from the ledger."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from strop.observe.metrics.reward_divergence import sure_slope
from strop.observe.run_files.jsonl_journals import gain_of
from strop.observe.run_files.settings_table import settings_of
from strop.stats.intervals import Difference
from strop.storage.checkpoint import listed
from strop.storage.ledger.fates_by_kind import KindFates, kinds_of, tries_and_tasks
from strop.storage.ledger.ledger import Ledger
from strop.storage.ledger.schema import Offered
from strop.storage.run_folder import WARMUP, RunFolder, read_rows
from strop.types import Outcome, Rollout, Turn

_SAMPLED = 64  # rollouts of the last step that are read
_PART = 1 / 4  # of the steps: what counts as the beginning and as the end of a run


@dataclass(frozen=True)
class History:
    """Files of a run in memory; everything but the rows may be missing."""

    rows: Sequence[Mapping[str, Any]]  # of metrics.jsonl with those of timing.jsonl, one per step
    settings: Mapping[str, str] = field(default_factory=dict)  # of recipe.py, by path
    kinds: Sequence[KindFates] = ()
    groups: Sequence[Offered] = ()  # in the order of admission
    tries: tuple[int, int] = (0, 0)  # groups, and the different tasks they were about
    rollouts: Sequence[Rollout] = ()  # some of the last step
    specials: Mapping[int, str] = field(default_factory=dict)  # tokens that are no text, by id
    gain: Difference | None = None  # of held-out accuracy, task by task
    before: Sequence[Mapping[str, Any]] = ()  # rows of the supervised warm-up
    is_warmup: bool = False  # whether it is the warm-up of another run
    siblings: Sequence[tuple[float, float]] = ()  # held-out before and after, of each seed of the same settings

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The rows of optimizer steps: all but the measurement before the first."""
        return [row for row in self.rows if row["step"] > 0]

    @property
    def measured(self) -> list[Mapping[str, Any]]:
        """The rows with a held-out accuracy and its interval."""
        return [row for row in self.rows if all(_is_number(row.get(f"heldout{end}")) for end in ("", "_low", "_high"))]

    def points(self, name: str) -> list[tuple[float, float]]:
        """A metric by step, where it is a number."""
        return [(row["step"], float(row[name])) for row in self.steps if _is_number(row.get(name))]

    def early(self, name: str) -> float:
        """The mean of a metric over the first quarter of its steps; NaN where there is none."""
        return _mean([value for _, value in self.points(name)], 0.0, _PART)

    def late(self, name: str, part: float = _PART) -> float:
        """The same over the last quarter, or another part."""
        return _mean([value for _, value in self.points(name)], 1 - part, 1.0)

    def rise(self, name: str) -> float:
        """By how much a line through all steps rises; 0 where its 95% interval holds 0."""
        points = self.points(name)
        return sure_slope(points) * (points[-1][0] - points[0][0]) if len(points) > 1 else 0.0

    def number(self, setting: str, default: float) -> float:
        """A setting that is a number."""
        try:
            return float(self.settings.get(setting, default))
        except ValueError:
            return default

    @property
    def cut_by(self) -> str:
        """What the rollouts that were cut ended at: `turns`, the `limit` of a completion or of the context, or
        `design`.
        """
        cut = [each for each in self.rollouts if each.outcome is Outcome.TRUNCATED and each.turns]
        if cut and all(self.is_ended(each.turns[-1]) for each in cut):
            return "turns"
        return "limit" if not cut or any(self._is_full(each) for each in cut) else "design"

    def is_ended(self, turn: Turn) -> bool:
        """Whether a completion came to its end."""
        return bool(len(turn.tokens)) and int(turn.tokens[-1]) in self.specials

    def _is_full(self, rollout: Rollout) -> bool:
        whole = sum(len(turn.prompt) + len(turn.tokens) for turn in rollout.turns)
        last, most = len(rollout.turns[-1].tokens), self.number("sampling.max_tokens", 0)
        return last >= most or whole + 1 >= self.number("context", 0)

    def late_groups(self, part: float = 1 / 3) -> list[Offered]:
        """The groups of the last steps in which the policy made rollouts of its own."""
        tried = [group for group in self.groups if group.tried > 0]
        return tried[len(tried) - math.ceil(part * len(tried)) :]


def read_history(folder: RunFolder) -> History:
    """Of a run folder, finished or not."""
    times = {row["step"]: row for row in read_rows(folder.timing)}
    rows = [{**times.get(row["step"], {}), **row} for row in read_rows(folder.metrics)]
    settings = settings_of(folder.recipe)
    gain, siblings = gain_of(folder), _siblings(folder)
    before = read_rows(RunFolder(folder.path / WARMUP).metrics)
    plain = History(rows, settings, specials=_specials(folder), gain=gain, before=before, siblings=siblings)
    plain = replace(plain, is_warmup=folder.path.name == WARMUP)
    if not folder.ledger.is_file():
        return plain
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        groups = ledger.offered()
        rollouts = ledger.sample(int(rows[-1]["step"]), _SAMPLED) if rows else []
    finally:
        ledger.close()
    kinds, tries = kinds_of(folder.ledger), tries_and_tasks(folder.ledger)
    return replace(plain, kinds=kinds, groups=groups, tries=tries, rollouts=rollouts)


def _specials(folder: RunFolder) -> dict[int, str]:
    """From the tokenizer of the newest checkpoint, read as JSON."""
    try:
        added = json.loads((listed(folder.checkpoints)[-1] / "tokenizer.json").read_text())["added_tokens"]
        return {int(token["id"]): str(token["content"]) for token in added if token.get("special")}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _siblings(folder: RunFolder) -> list[tuple[float, float]]:
    """Finished runs beside this one that differ by their seed alone, and this one."""
    own, places = (
        _seedless(folder.recipe),
        [path.parent for path in folder.path.resolve().parent.glob("*/summary.json")],
    )
    found = [_ends(place / "summary.json") for place in places if own and _seedless(place / "recipe.py") == own]
    return [each for each in found if each is not None]


def _seedless(recipe: Path) -> str:
    """A recipe.py without the line that names the run, and without seeds."""
    text = recipe.read_text(errors="replace") if recipe.is_file() else ""
    return re.sub(r"\bseed=\d+", "", text.partition("\n")[2])


def _ends(summary: Path) -> tuple[float, float] | None:
    try:
        found = json.loads(summary.read_text())
        return float(found["heldout_before"]), float(found["heldout_after"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _mean(values: Sequence[float], first: float, last: float) -> float:
    begin = min(math.floor(first * len(values)), len(values) - 1) if values else 0
    chosen = values[begin : max(math.ceil(last * len(values)), begin + 1)]
    return sum(chosen) / len(chosen) if chosen else math.nan


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
