"""Python interface of `import strop`: `recipe` builds a run from a recipe's name, `train` trains it, in a script or a
notebook.

strop.train(strop.recipe("grpo", env="arithmetic:3", steps=50))
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from rich.console import Console

from strop.errors import ConfigurationError, nearest
from strop.launch.running.launch import launch, relaunch
from strop.models.silence_libraries import hush
from strop.observe.live.progress_bar import ProgressBar
from strop.placement.place import place
from strop.recipes import build, parameters_of, recipe_named
from strop.recipes.given_objects import as_values
from strop.run import Run
from strop.run_state import Watcher
from strop.types import Metrics


def recipe(name: str, **fields: Any) -> Run:
    """The run that a recipe makes; `fields` are its parameters, those of `Setting` among them, or fields of `Run`.

    `env` may also be rows (a list of dicts, a pandas DataFrame, a Dataset), and `reward` a function or several.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"recipe takes a name such as 'grpo', got {type(name).__name__}")
    made = recipe_named(name)
    own, known = parameters_of(made), {field.name for field in dataclasses.fields(Run)}
    if unknown := sorted(set(fields) - (possible := own.keys() | known)):
        raise ConfigurationError(f"recipe {name} has no field {unknown[0]!r}: {nearest(unknown[0], possible)}")
    types = get_type_hints(Run) | {key: parameter.type for key, parameter in own.items()}
    fields = as_values(fields, types)
    run = build(made, {key: value for key, value in fields.items() if key in own})
    return dataclasses.replace(run, **{key: value for key, value in fields.items() if key not in own})


def train(
    run: Run | str | Path,
    name: str = "",
    runs: str | Path = "runs",
    *,
    where: str = "inline",
    engines: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train a run to its end, or go on with the one in a folder; returns its summary, `folder` among it.

    `name` is that of its folder in `runs`; `where` engines compute is inline, process or ray.
    """
    if not isinstance(run, Run | str | Path):
        raise ConfigurationError(f"train takes a Run or the folder of one, got {type(run).__name__}")
    if isinstance(run, Run):
        placed = place(run, where, engines)
        title, steps, limit = placed.recipe, placed.steps, placed.max_generated_tokens
        return _shown(ProgressBar(title, steps, _console(quiet), limit), lambda w: launch(placed, Path(runs), name, w))
    return resume(run, quiet=quiet)


def resume(run: str | Path, *, quiet: bool = False, trust: bool = False) -> dict[str, Any]:
    """Go on with the run in a folder; its recipe.py is code, and one that you did not write needs `trust`."""
    path = Path(run)
    bar = ProgressBar(path.name, 0, _console(quiet))
    return _shown(bar, lambda watchers: relaunch(path, watchers, trust=trust))


def _console(quiet: bool) -> Console:
    return Console(quiet=quiet, highlight=False)


def _shown(bar: ProgressBar, go: Callable[[list[Watcher]], dict[str, Any]]) -> dict[str, Any]:
    hush()
    with bar:
        if not _has_loop():
            return go([bar])
        return _beside(lambda interruption: go([bar, interruption]))


def _has_loop() -> bool:
    """Notebooks execute their cells in an event loop, and there can be one in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@dataclass
class Interruption:
    """Ends a run in another thread after the current step; the run can be resumed."""

    is_wanted: bool = False

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        if self.is_wanted:
            raise KeyboardInterrupt


def _beside(go: Callable[[Interruption], dict[str, Any]]) -> dict[str, Any]:
    """In a thread of its own, while this one waits."""
    interruption, outcome = Interruption(), Future[dict[str, Any]]()

    def work() -> None:
        try:
            outcome.set_result(go(interruption))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="run")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        interruption.is_wanted = True
        thread.join()
    return outcome.result()
