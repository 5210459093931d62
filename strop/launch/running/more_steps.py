"""Extension of a run by more steps: rewrites its recipe.py, records this in origin.json, and resumes.

Without parts that schedule by the number of steps, the result has the bits of a run with that number from the start.
"""

from __future__ import annotations

import json
from pathlib import Path

from strop.errors import ConfigurationError
from strop.launch.running.provenance_check import check_origin, digest, write_recipe
from strop.run import Run
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import from_source, to_source


def extend(path: Path, steps: int, trust: bool = False) -> None:
    """From here on the run in this folder has `steps` steps."""
    folder = RunFolder(path)
    check_origin(folder, changed_anyway=False)
    run: Run = from_source(folder.recipe, trust)
    if steps <= run.steps:
        raise ConfigurationError(f"{path} has {run.steps} steps: steps={steps} would not be more")
    before, run.steps = run.steps, steps
    title = f"strop run {path.name}: {run.recipe}, seed {run.seed}, extended from {before} to {steps} steps."
    write_recipe(folder.recipe, to_source(run, title))
    origin = folder.read_origin()
    origin |= {folder.recipe.name: digest(folder.recipe), "extended": [*origin.get("extended", ()), [before, steps]]}
    folder.origin.write_text(json.dumps(origin, indent=1) + "\n")
