"""Provenance of a run (origin.json: data, code, model, machine), compared on resume and changed by more steps."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from strop.capabilities import inside, uses_gpu
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.launch.checks.prompt_lengths import NotServed
from strop.models.loading.model_names import model_folder
from strop.observe.run_files.provenance import code, commit, compiler, hardware, versions
from strop.run import Run
from strop.storage.named_files import named_places, own_code
from strop.storage.run_folder import FORMAT, RunFolder
from strop.storage.run_source import from_source, to_source
from strop.storage.trust import sign
from strop.training.trainers.torch import TorchTrainer

_WHOLE = 1 << 26  # bytes of a file that is hashed whole
_SLICES, _SLICE = 64, 1 << 20  # of a larger one: a model of many gigabytes must not cost minutes
_RECIPE = "recipe.py"


def write_origin(folder: RunFolder, run: Run, recipe: str, left_out: Sequence[NotServed]) -> None:
    """What a new run is made from, `recipe` being the text of its recipe.py."""
    tables = [part for part in run.envs if isinstance(part, Table)]
    origin = {
        "format": FORMAT,
        "machine": machine(run),
        "files": digests(run),
        _RECIPE: hashlib.sha256(recipe.encode()).hexdigest(),
        "rules": {table.name: dict(zip(("rule", "why"), table.chosen, strict=True)) for table in tables},
        "left_out": {each.path: {"prompts": len(each.ids), "of": each.tasks, "why": str(each)} for each in left_out},
    }
    folder.origin.write_text(json.dumps(origin, indent=1) + "\n")


def write_recipe(recipe: Path, text: str) -> None:
    """recipe.py, known as this user's own."""
    if problem := sign(recipe, text):
        print(f"warning: going on with this run will need --trust, no key can be kept: {problem}", file=sys.stderr)
    recipe.write_text(text)


def machine(run: Run) -> dict[str, Any]:
    """What bits may depend on beside a run's own fields."""
    is_gpu = uses_gpu(run)
    return {
        **versions(),
        "commit": commit(),
        "code": code(),
        **hardware("cuda" if is_gpu else "cpu"),
        "kernels": "triton" if is_gpu else compiler(),
        "threads": run.threads,
    }


def differences(folder: RunFolder, run: Run) -> list[str]:
    """How the machine differs from the one a run was made on."""
    before, now = folder.read_origin()["machine"], machine(run)
    return [
        f"{name} was {before.get(name)} and is {now.get(name)}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]


def check_origin(folder: RunFolder, changed_anyway: bool) -> None:
    """Refuse to go on with other data, code or model than a run began with, unless that is wanted: then note it."""
    origin = folder.read_origin()
    changed = [f"{folder.recipe} was changed"] if digest(folder.recipe) != origin[_RECIPE] else []
    for path, before in origin["files"].items():
        if not Path(path).exists():
            changed.append(f"{path} is gone")
        elif digest(Path(path)) != before:
            changed.append(f"{path} was changed")
    if changed and not changed_anyway:
        raise ConfigurationError(
            f"{folder.path} began with other files: {'; '.join(changed)}. Put them back, or go on with what is there "
            f"now: strop train --resume {folder.path} --changed-anyway"
        )
    if changed:
        origin["files"] = {path: digest(Path(path)) for path in origin["files"] if Path(path).exists()}
        origin |= {_RECIPE: digest(folder.recipe), "changed_anyway": [*origin.get("changed_anyway", ()), changed]}
        folder.origin.write_text(json.dumps(origin, indent=1) + "\n")


def digests(run: Run) -> dict[str, str]:
    """By absolute path: every file of the model, of the data, and of code that is not strop's."""
    places = [model_folder(run.model), *named_places(run), *own_code(run)]
    files = {str(file.resolve()) for place in places for file in _files(place)}
    return {path: digest(Path(path)) for path in sorted(files)}


def _files(place: Path) -> Iterable[Path]:
    if place.is_dir():
        return [path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return [place] if place.is_file() else []


def digest(path: Path) -> str:
    """A hash of a file: of all of it, or of its size and slices from end to end."""
    state, size = hashlib.sha256(), path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE:
            return hashlib.file_digest(file, "sha256").hexdigest()
        state.update(str(size).encode())
        for number in range(_SLICES):
            file.seek(number * (size - _SLICE) // (_SLICES - 1))
            state.update(file.read(_SLICE))
    return state.hexdigest()


def extend(path: Path, steps: int, trust: bool = False, changed_anyway: bool = False) -> None:
    """From here on the run in this folder has `steps` steps, and origin.json says so.

    Without parts that schedule by the number of steps, the result has the bits of a run that had so many from
    the start.
    """
    folder = RunFolder(path)
    check_origin(folder, changed_anyway)
    run: Run = from_source(folder.recipe, trust)
    if steps <= run.steps:
        raise ConfigurationError(f"{path} has {run.steps} steps: steps={steps} would not be more")
    if any(each.schedule != "constant" for each in inside(run.trainer, TorchTrainer)):
        raise ConfigurationError(
            f"the learning rate of {path} falls to 0 at step {run.steps}, so further ones change nothing: start a "
            f"new run from its weights with model={path}"
        )
    before, run.steps = run.steps, steps
    title = f"strop run {path.name}: {run.recipe}, seed {run.seed}, extended from {before} to {steps} steps."
    write_recipe(folder.recipe, to_source(run, title))
    origin = folder.read_origin()
    origin |= {folder.recipe.name: digest(folder.recipe), "extended": [*origin.get("extended", ()), [before, steps]]}
    folder.origin.write_text(json.dumps(origin, indent=1) + "\n")
