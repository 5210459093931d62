"""Command `strop train`: builds the run, trains it, and prints a summary before, during and after."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from strop.cli.estimate_duration import warning
from strop.cli.fields.arguments import ParsedWords
from strop.cli.fields.overrides import find_recipe, make_run
from strop.cli.terminal import closable_output, is_trusted
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, nearest
from strop.launch.checks.preflight import check
from strop.launch.checks.preflight_all import first_prompt, rehearse
from strop.launch.running.launch import launch, relaunch
from strop.launch.running.provenance_check import extend
from strop.launch.running.spelled import warnings as spelled
from strop.models.loading.check_folder import check_model_folder
from strop.models.loading.model_names import model_folder
from strop.models.silence_libraries import hush
from strop.observe.live.progress_bar import ProgressBar
from strop.observe.report.svg_charts import short
from strop.observe.run_files.run_info import find_runs
from strop.placement.place import place
from strop.roles import Tracker
from strop.run import Run
from strop.run_state import Watcher
from strop.storage.run_folder import RunFolder, fresh_folder
from strop.storage.run_source import from_source, to_source
from strop.types import Metrics

INTERRUPTED = 130


@dataclass(frozen=True)
class StartOptions:
    """Options of a new run that are not part of the run itself."""

    name: str  # of its folder; empty: recipe and seed
    root: Path
    track: str
    where: str  # engines run: inline, process or ray
    engines: int
    is_dry: bool  # only print the run
    is_trusted: bool = False  # a recipe.py that this user did not write may be executed


def start_run(typed: ParsedWords, start: StartOptions, quiet: bool) -> int:
    """Train a new run; returns the exit code."""
    run = make_run(find_recipe(typed.recipe, start.is_trusted), typed.overrides)
    if start.track:
        run = replace(run, trackers=(*run.trackers, *(_tracker(each) for each in start.track.split(","))))
    run = place(run, start.where, start.engines)
    check(run)
    check_model_folder(model_folder(run.model))
    for text in filter(None, [warning(run), *spelled(run)]):
        print(f"warning: {text}", file=sys.stderr)
    name = start.name or f"{run.recipe}-seed{run.seed}"
    folder = fresh_folder(start.root, name)
    if start.is_dry:
        for text in rehearse(run)[1]:
            print(f"warning: {text}", file=sys.stderr)
        print("\n".join([*rules(run), first_prompt(run)]), file=sys.stderr)
        print(to_source(run, f"strop run: {run.recipe}, seed {run.seed}. Nothing was started."))
        return 0
    if folder.path.name != name:
        print(
            f"{start.root / name} is there already: this run is {folder.path.name}; to go on with that one: "
            f"strop train --resume {start.root / name}",
            file=sys.stderr,
        )
    return _train(run, folder, quiet, lambda watchers: launch(run, start.root, folder.path.name, watchers))


def resume_run(
    path: Path,
    words: list[str],
    quiet: bool,
    changed_anyway: bool = False,
    trust: bool = False,
    is_dry: bool = False,
) -> int:
    """Resume a run, or only print it; returns the exit code."""
    steps = _more_steps(path, words)
    folder = RunFolder(path)
    if not folder.recipe.is_file():
        within, beside = ([str(each.path) for each in find_runs(place)] for place in (path, path.parent))
        hint = nearest(str(path), within or beside) if within or beside else f"{path.parent} holds no run"
        raise ConfigurationError(f"{path} is not a run folder: it has no recipe.py; {hint}")
    folder.read_origin()  # refuses a run of another version before its code is executed
    trust = is_trusted(folder, trust)
    if steps is not None and not is_dry:
        extend(path, steps, trust, changed_anyway)
    run: Run = from_source(folder.recipe, trust)
    if is_dry:
        print(
            to_source(
                replace(run, steps=steps or run.steps), f"strop run: {path} as it would resume. Nothing was started."
            )
        )
        return 0
    return _train(run, folder, quiet, lambda watchers: relaunch(path, watchers, changed_anyway, trust))


def _more_steps(path: Path, words: list[str]) -> int | None:
    """New number of steps, the only setting that a resumed run accepts."""
    name, _, value = words[0].partition("=") if words else ("", "", "")
    if name == "steps" and value.isdigit() and len(words) == 1:
        return int(value)
    if words:
        raise ConfigurationError(
            f"a resumed run keeps its recipe.py, so {' '.join(words)!r} cannot be set; only steps=NUMBER can. A new "
            f"run goes on from its weights with other settings: strop train RECIPE model={path} {' '.join(words)}"
        )
    return None


def _train(run: Run, folder: RunFolder, quiet: bool, go: Callable[[list[Watcher]], dict[str, Any]]) -> int:
    with closable_output():
        return _watched(run, folder, quiet, go)


def _watched(run: Run, folder: RunFolder, quiet: bool, go: Callable[[list[Watcher]], dict[str, Any]]) -> int:
    hush()
    console = Console(quiet=quiet, highlight=False)
    first = StartMessage(run, folder.path, console)
    try:
        with ProgressBar(run.recipe, run.steps, console, run.max_generated_tokens) as bar:
            summary = go([] if quiet else [first, bar])
    except (KeyboardInterrupt, asyncio.CancelledError):
        _say_how_to_resume(folder.path)
        return INTERRUPTED
    Console(highlight=False).print(ending(summary), soft_wrap=True)
    if not summary["is_complete"]:
        _say_how_to_resume(Path(summary["folder"]))
        return INTERRUPTED
    return 0


@dataclass
class StartMessage:
    """Watcher that prints what is trained once all checks have passed."""

    run: Run
    path: Path
    console: Console
    is_printed: bool = False

    def begins(self, title: str, steps: int, max_tokens: int = 0) -> None:
        if not self.is_printed:
            self.console.print("\n".join([opening(self.run, self.path), *map(escape, rules(self.run))]), soft_wrap=True)
        self.is_printed = True

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        pass


def rules(run: Run) -> list[str]:
    """For each dataset file: the rule that extracts answers, why it was chosen, and an example."""
    return [f"{env.name}: {env.reads()}" for env in run.envs if isinstance(env, Table)]


def opening(run: Run, path: Path) -> str:
    """One line: recipe, model, environments, size and folder of a run."""
    envs = ", ".join(f"{env.name} {env.level}" for env in run.envs)
    size = run.budget.size
    rollouts = f" × {size} rollouts" if size else ""
    return (
        f"[bold]{run.recipe}[/bold] trains [bold]{escape(run.model)}[/bold] on {escape(envs)}: {run.steps} steps of "
        f"{run.groups_per_step} groups{rollouts} → {escape(str(path))}"
    )


def ending(summary: dict[str, Any]) -> str:
    """Result of a run and the path of its report."""
    so_far = "" if summary["is_complete"] else " so far"
    lines = [f"held-out accuracy{so_far} {_change(summary)}"]
    if (taught := summary.get("warmup")) is not None and taught["heldout_before"] is not None:
        lines.insert(0, f"warm-up: held-out accuracy {taught['heldout_before']:.1%} → {taught['heldout_after']:.1%}")
    lines.append(
        f"{summary['seconds'] / 60:.1f} minutes, {summary['steps']} steps, "
        f"{short(summary['tokens_generated'])} tokens generated, {short(summary['tokens_trained'])} trained, "
        f"peak memory {summary['peak_rss_bytes'] / 1e9:.2f} GB"
    )
    lines += best_checkpoint(summary)
    lines.append(f"report: {escape(str(Path(summary['folder']) / 'report.html'))}")
    return "\n".join(lines)


def _change(summary: dict[str, Any]) -> str:
    before, after = summary["heldout_before"], summary["heldout_after"]
    if before is None or after is None:
        return "not measured"
    low, high = summary["heldout_after_low"], summary["heldout_after_high"]
    spread = f" (95% interval {low:.1%} to {high:.1%})" if low is not None else ""
    gain = summary["heldout_gain"]
    paired = f" ({100 * gain['low']:+.1f} to {100 * gain['high']:+.1f}, task by task)" if gain else ""
    cut = f", {share:.0%} of its completions truncated" if (share := summary["heldout_truncated"]) else ""
    points = f"{100 * (after - before):+.1f} points{paired}{cut}"
    return f"[bold]{before:.1%} → [green]{after:.1%}[/green][/bold]{spread}, {points}"


def best_checkpoint(summary: dict[str, Any]) -> list[str]:
    """Best checkpoint and the bias of its accuracy, if it beats the last one."""
    best = summary.get("best")
    if best is None or best["heldout"] <= summary["heldout_after"]:
        return []
    where = escape(str(Path(summary["folder"]) / "checkpoints" / "best"))
    return [
        f"best checkpoint: step {best['step']} with {best['heldout']:.1%}, the highest of {best['measured']} "
        f"measurements and therefore up to {100 * best['bias']:.1f} points too high; measure it on other tasks: "
        f"strop eval {where} --fresh"
    ]


def _say_how_to_resume(path: Path) -> None:
    Console(highlight=False).print(
        f"stopped; resume with: [bold]strop train --resume {escape(str(path))}[/bold]", soft_wrap=True
    )


def _tracker(name: str) -> Tracker:
    from strop.observe.trackers.experiment_logs import MLflow, SwanLab
    from strop.observe.trackers.tensorboard import TensorBoard
    from strop.observe.trackers.trackio import Trackio
    from strop.observe.trackers.wandb import Wandb

    kinds: dict[str, Callable[[], Tracker]] = {"tensorboard": TensorBoard, "trackio": Trackio, "wandb": Wandb}
    kinds |= {"mlflow": MLflow, "swanlab": SwanLab}
    if name.strip() not in kinds:
        raise ConfigurationError(f"there is no tracker {name.strip()!r}: {nearest(name.strip(), kinds)}")
    return kinds[name.strip()]()
