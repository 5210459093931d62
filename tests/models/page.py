"""Generated page docs/models.md: how a model is checked, and what the sweep over all families found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import transformers

from tests.models.judge import LIMIT, Judgement

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
_MADE = "<!-- written by `make families` from strop/models/loading/families.json and tests/models/page.md -->\n"
_TEXT = Path(__file__).parent / "page.md"
_SHOWN = 160  # letters of a reason


def page_of(found: Mapping[str, Judgement]) -> str:
    """The whole page."""
    kinds = {kind: {n: j for n, j in found.items() if j.verdict == kind} for kind in ("runs", "refused", "unbuilt")}
    red = {name: each for name, each in found.items() if each.is_red}
    counts = (
        f"transformers {transformers.__version__} makes causal language models of {len(found)} families; "
        f"{len(found) - len(kinds['unbuilt'])} could be built tiny. **{len(kinds['runs'])} run**, "
        f"{len(kinds['refused'])} are refused, {len(red)} are accepted and wrong by more than {LIMIT:g}.\n"
    )
    parts = [_MADE + _TEXT.read_text(), counts]
    if red:
        parts.append("### Accepted and wrong\n\n" + _reasons(red, "difference or error"))
    parts.append("### Families that run\n\nLargest differences from transformers.\n\n" + _differences(kinds["runs"]))
    parts.append("### Families that are refused\n\n" + _reasons(kinds["refused"], "why"))
    parts.append("### Not built\n\nTheir default configuration makes no tiny model.\n\n" + _names(kinds["unbuilt"]))
    return "\n".join(parts)


def _differences(found: Mapping[str, Judgement]) -> str:
    rows = [f"| {n} | {j.trainer:.1e} | {j.gradient:.1e} | {j.engine:.1e} |" for n, j in sorted(found.items())]
    head = "| family | trainer, nats | gradient, of the largest | engine, nats |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _reasons(found: Mapping[str, Judgement], title: str) -> str:
    rows = [f"| {name} | {_said(each)} |" for name, each in sorted(found.items())]
    return f"| family | {title} |\n|---|---|\n" + "\n".join(rows) + "\n"


def _said(judgement: Judgement) -> str:
    worst = max(judgement.trainer, judgement.gradient, judgement.engine)
    told = (judgement.why or f"{worst:.1e}").replace("|", "\\|").replace("<", "&lt;")
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"


def _names(found: Mapping[str, Judgement]) -> str:
    return ", ".join(sorted(found)) + "\n"
