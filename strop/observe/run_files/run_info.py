"""Summary of a run folder, read without loading a model; any file may still be missing."""

from __future__ import annotations

import ast
import fcntl
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.storage.run_folder import RunFolder, read_rows

_WORDS = ("recipe", "folder")  # of a summary; else there are numbers


@dataclass(frozen=True)
class Facts:
    """Main facts of a run."""

    name: str
    recipe: str
    model: str
    envs: str
    seed: int
    step: int
    steps: int  # planned
    state: str  # running, complete or stopped
    before: tuple[float, float, float] | None  # held-out accuracy, low, high
    after: tuple[float, float, float] | None
    seconds: float
    tokens_generated: int
    tokens_trained: int
    rollouts: int
    peak_bytes: int | None


def read_facts(folder: RunFolder) -> Facts:
    """Put the facts together from the recipe, the journal and the summary."""
    settings, rows, summary = constants(folder.recipe), read_rows(folder.metrics), read_summary(folder)
    heldout = [row for row in rows if row.get("heldout") is not None]
    last = rows[-1] if rows else {}
    step, steps = int(last.get("step", 0)), int(settings.get("steps", 0))
    is_complete = bool(summary.get("is_complete", rows and step >= steps))
    return Facts(
        name=folder.path.resolve().name,
        recipe=str(settings.get("recipe", summary.get("recipe", "?"))),
        model=str(settings.get("model", "?")),
        envs=envs_of(folder.recipe),
        seed=int(settings.get("seed", summary.get("seed", 0))),
        step=step,
        steps=steps,
        state="running" if is_running(folder) else ("complete" if is_complete else "stopped"),
        before=_interval(heldout[0]) if heldout else None,
        after=_interval(heldout[-1]) if heldout and heldout[-1]["step"] > 0 else None,
        seconds=sum(float(row.get("seconds", 0.0)) for row in read_rows(folder.timing)),
        tokens_generated=int(last.get("tokens_generated", 0)),
        tokens_trained=int(last.get("tokens_trained", 0)),
        rollouts=int(last.get("rollouts", 0)),
        peak_bytes=summary.get("peak_rss_bytes"),
    )


def _interval(row: dict[str, Any]) -> tuple[float, float, float]:
    value = float(row["heldout"])
    return value, float(row.get("heldout_low", value)), float(row.get("heldout_high", value))


def read_summary(folder: RunFolder) -> dict[str, Any]:
    """summary.json, or nothing while there is none."""
    try:
        found = json.loads(folder.summary.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and all(_is_told(*each) for each in found.items()) else {}


def _is_told(name: str, value: Any) -> bool:
    """Whether a summary may say that."""
    if name in _WORDS:
        return isinstance(value, str)
    if name == "findings":
        return isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return value is None or isinstance(value, bool if name == "is_complete" else int | float | dict | list)


def constants(recipe: Path) -> dict[str, Any]:
    """The plain fields of `run = Run(...)` in a recipe file, read without executing it."""
    return {name: value.value for name, value in fields_of(recipe).items() if isinstance(value, ast.Constant)}


def rules_of(folder: RunFolder) -> dict[str, str]:
    """How answers are found in completions, by source of tasks."""
    origin = folder.read_origin() if folder.origin.is_file() else {}
    return {name: chosen["rule"] for name, chosen in origin.get("rules", {}).items()}


def envs_of(recipe: Path) -> str:
    """The environments of a recipe file as its author would name them: arithmetic 5, compose 1."""
    envs = getattr(fields_of(recipe).get("envs"), "elts", [])
    return ", ".join(_env(node) for node in envs if isinstance(node, ast.Call))


def estimator_of(recipe: Path) -> str:
    """The class of a recipe file's pass-rate estimator; empty where it names none."""
    node = fields_of(recipe).get("estimator")
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def policies_of(recipe: Path) -> tuple[str, ...]:
    """Those that have weights of their own in a recipe file; none where one model learns."""
    trainer = fields_of(recipe).get("trainer")
    calls = [node for node in ast.walk(trainer) if isinstance(node, ast.Call)] if trainer is not None else []
    found = [word.value for call in calls for word in call.keywords if word.arg == "policy_names"]
    return tuple(ast.literal_eval(found[0])) if found else ()


def _env(node: ast.Call) -> str:
    given = [*node.args, *(word.value for word in node.keywords if word.arg != "seed")]
    plain = [str(value.value) for value in given if isinstance(value, ast.Constant)]
    return " ".join([ast.unparse(node.func).lower(), *plain[:1]])


def fields_of(recipe: Path) -> dict[str, ast.expr]:
    """The fields of `run = Run(...)` in a recipe file, as they are written."""
    try:
        tree = ast.parse(recipe.read_text())
    except (OSError, SyntaxError, ValueError):
        return {}
    calls = [node.value for node in tree.body if isinstance(node, ast.Assign) and _assigns(node, "run")]
    found = calls[-1].keywords if calls and isinstance(calls[-1], ast.Call) else []
    return {word.arg: word.value for word in found if word.arg}


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def is_running(folder: RunFolder) -> bool:
    """Whether a process holds the folder's lock."""
    try:
        with (folder.path / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def find_runs(root: Path) -> list[RunFolder]:
    """Run folders under `root`, the latest last."""
    found = [path for path in root.iterdir() if (path / "recipe.py").is_file()] if root.is_dir() else []
    return [RunFolder(path) for path in sorted(found, key=lambda path: (path / "recipe.py").stat().st_mtime)]
