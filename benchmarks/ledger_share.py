"""What the ledger costs: its share of a run's time on the pocket model; the promise is at most 3%.

Run it from the project's root: `python benchmarks/ledger_share.py [--steps N] [--json]`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from strop.launch.running.launch import launch
from strop.models.silence_libraries import hush
from strop.recipes import build, recipe_named
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import read_rows

LIMIT = 0.03
WRITES = ("admitted", "finished", "trained", "published", "sync")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--json", action="store_true")
    asked = arguments.parse_args()
    hush()
    found = measure(asked.steps)
    print(json.dumps(found, indent=1) if asked.json else table(found))


def measure(steps: int) -> dict[str, Any]:
    """One run of the pocket recipe; every call that writes the ledger is timed."""
    seconds: defaultdict[str, float] = defaultdict(float)
    calls: defaultdict[str, int] = defaultdict(int)
    plain = {name: getattr(Ledger, name) for name in WRITES}
    for name, method in plain.items():
        setattr(Ledger, name, _timed(name, method, seconds, calls))
    try:
        with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()):
            values = {"steps": steps, "heldout_tasks": 1, "heldout_every": 0, "checkpoint_every": steps}
            summary = launch(build(recipe_named("pocket"), values), Path(folder), "run")
            size = (Path(folder) / "run" / "ledger.db").stat().st_size
            total = sum(row["seconds"] for row in read_rows(Path(folder) / "run" / "timing.jsonl"))
    finally:
        for name, method in plain.items():
            setattr(Ledger, name, method)
    spent = sum(seconds.values())
    return {
        "ratio": spent / total,
        "limit": LIMIT,
        "seconds": total,
        "ledger_seconds": spent,
        "steps": summary["steps"],
        "bytes": size,
        "tokens": summary["tokens_generated"],
        "by_call": {name: {"calls": calls[name], "seconds": seconds[name]} for name in WRITES},
    }


def _timed(
    name: str, method: Callable[..., Any], seconds: defaultdict[str, float], calls: defaultdict[str, int]
) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return method(*arguments)
        finally:
            seconds[name] += time.perf_counter() - began
            calls[name] += 1

    return timed


def table(found: dict[str, Any]) -> str:
    lines = [f"{'call':<10} {'calls':>6} {'seconds':>9} {'ms each':>8}"]
    for name, row in found["by_call"].items():
        each = 1e3 * row["seconds"] / max(row["calls"], 1)
        lines.append(f"{name:<10} {row['calls']:>6} {row['seconds']:>9.4f} {each:>8.3f}")
    verdict = "kept" if found["ratio"] <= found["limit"] else "broken"
    lines.append(
        f"{found['ledger_seconds']:.3f} s of {found['seconds']:.1f} s over {found['steps']} steps: "
        f"{found['ratio']:.2%} (promise {found['limit']:.0%}, {verdict}); "
        f"{found['bytes'] / max(found['tokens'], 1):.0f} bytes per generated token"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
