"""Fields `Acts:` and `Break:` of a recipe's record: metrics that show that the mechanism acts, and its off switch.

`Acts:` names metrics of metrics.jsonl that leave their neutral value when the mechanism acts.

    Acts: clipped_share > 0
    Acts: reference_version > 0 and reference_kl != 0 with every=1

Several metrics are joined by `and`; each must leave its neutral value in one step at least, so that a schedule may rest
in others. `with` sets fields where a few steps are too few for the defaults: a period, a pool, a folder (MODEL for that
of another model, CODER for that of one that was trained on programs, RUN for that of a former run, PILOT for that of
one over the same few tasks, PEER for groups that another node shares). `warmup/stage` is a metric of the warm-up,
`weight/*` any whose name begins so.

`Break:` are fields, as on the command line, that take away only the idea, and what that means. Under them one of the
metrics rests, and everything else is as before.

    Break: strategy.shares=0,0,0: later waves read no hint
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from strop.errors import ConfigurationError

_METRIC = re.compile(r"^(\S+) (>|<|!=) (-?[\d.]+(?:e-?\d+)?)$")
_COMPARED: dict[str, Callable[[float, float], bool]] = {">": operator.gt, "<": operator.lt, "!=": operator.ne}
_ROUNDING = 1e-6  # a metric that differs by less has not moved


@dataclass(frozen=True)
class Metric:
    """Metric with its neutral value."""

    name: str
    comparison: str  # >, < or !=
    neutral: float

    def values(self, rows: Sequence[Mapping[str, Any]]) -> list[float]:
        """What the steps that have it say."""
        found = [row[name] for row in rows for name in self._names(row) if row[name] is not None]
        return [float(value) for value in found]

    def has_moved(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether any step shows it off its neutral value."""
        compare = _COMPARED[self.comparison]
        return any(abs(v - self.neutral) > _ROUNDING and compare(v, self.neutral) for v in self.values(rows))

    def _names(self, row: Mapping[str, Any]) -> list[str]:
        if "*" not in self.name:
            return [self.name] if self.name in row else []
        return [name for name in row if fnmatchcase(name, self.name)]

    def __str__(self) -> str:
        return f"{self.name} {self.comparison} {self.neutral:g}"


@dataclass(frozen=True)
class Acts:
    """Parsed content of `Acts:`."""

    metrics: tuple[Metric, ...]
    fields: Mapping[str, str]  # as text, of a run that is only a few steps long

    def at_rest(self, rows: Sequence[Mapping[str, Any]]) -> list[Metric]:
        """The metrics that no step moved; empty where the mechanism acted."""
        return [metric for metric in self.metrics if not metric.has_moved(rows)]


def read_acts(text: str) -> Acts:
    """Read what stands after `Acts:`."""
    said, _, changed = text.partition(" with ")
    fields = [field.strip().partition("=") for field in changed.split(",") if field.strip()]
    metrics = tuple(_metric(each.strip()) for each in said.split(" and "))
    return Acts(metrics, {name: value for name, _, value in fields})


def _metric(text: str) -> Metric:
    if (match := _METRIC.match(text)) is None:
        raise ConfigurationError(f"after Acts: stand metrics as `clipped_share > 0`, joined by `and`; got {text!r}")
    return Metric(match.group(1), match.group(2), float(match.group(3)))


@dataclass(frozen=True)
class Break:
    """Parsed content of `Break:`."""

    fields: Mapping[str, str]  # as text
    meaning: str

    @property
    def words(self) -> str:
        """Its fields as on the command line."""
        return " ".join(f"{name}={value}" for name, value in self.fields.items())


def read_break(text: str) -> Break:
    """Read what stands after `Break:`."""
    words, _, meaning = text.partition(": ")
    pairs = [word.partition("=") for word in words.split()]
    if not pairs or not meaning or any(not name or not equals for name, equals, _ in pairs):
        raise ConfigurationError(f"after Break: stand fields and what they take away, `share=0: no hint`; got {text!r}")
    return Break({name: value for name, _, value in pairs}, meaning)
