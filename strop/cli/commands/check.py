"""Command `strop check`: whether a model can be trained here, on which path, in which memory, and how fast."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.errors import ModelError, nearest
from strop.launch.checks.model_report import NOTE, OK, REFUSED, ModelFact, rows_of
from strop.models.loading.check_folder import check_model_folder
from strop.models.loading.model_names import model_folder
from strop.models.silence_libraries import hush
from strop.recipes.model_paths import chosen_model

_COLOURS = {OK: "green", NOTE: "yellow", REFUSED: "red"}


def check(model: str, as_json: bool) -> int:
    """Print every answer; returns 1 if something is refused."""
    hush()
    folder, begun = _folder(model), time.monotonic()
    rows = []
    console = Console(stderr=as_json, highlight=False)
    with console.status(f"checking {model}") as status:
        for row in rows_of(folder):
            rows.append(row)
            status.update(f"checking {model}: {row.about}")
    seconds, is_refused = time.monotonic() - begun, any(row.state == REFUSED for row in rows)
    if as_json:
        told = {"model": model, "runs": not is_refused, "seconds": round(seconds, 1), "rows": [asdict(r) for r in rows]}
        print(json.dumps(told, indent=1))
    else:
        Console(highlight=False).print(_table(rows))
        verdict = "[red]cannot be trained as it is[/]" if is_refused else "[green]can be trained[/]"
        Console(highlight=False).print(f"{escape(model)} {verdict} ({seconds:.1f} s)", soft_wrap=True)
    return int(is_refused)


def _folder(model: str) -> Path:
    """Where it lies; whatever is no folder with a configuration is refused in a sentence."""
    path = model_folder(chosen_model(model))
    if path.is_file():
        raise ModelError(f"{path} is a file; give the model's folder, which holds config.json and *.safetensors")
    if not path.is_dir():
        others = [each.name for each in path.parent.iterdir() if each.is_dir()] if path.parent.is_dir() else []
        raise ModelError(f"there is no model {model!r}: {nearest(path.name, others or ['pocket'])}")
    if not (path / "config.json").is_file():
        check_model_folder(path)
    return path


def _table(rows: Sequence[ModelFact]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        helps = f" [dim]({escape(row.remedy)})[/]" if row.remedy else ""
        table.add_row(row.about, f"[{_COLOURS[row.state]}]{row.state}[/]", escape(row.answer) + helps)
    return table
