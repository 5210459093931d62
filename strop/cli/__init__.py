"""Command line `strop`: subcommands, their options, and error output. Each subcommand has a file of its own.

Heavy modules are imported inside the subcommands, so that `strop --help` answers at once.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from pathlib import Path
from typing import Annotated

import typer

from strop.cli.app import PASS_ON, AsJson, Debug, Device, Model, Runs, Seed, Threads, Trust, app
from strop.errors import BusyError, ConfigurationError, DataError, ModelError, StropError

_REFUSALS = (ConfigurationError, ModelError, DataError, BusyError)  # nothing was started


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"strop {version('strop')}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")]


@app.callback()
def _strop(version: Version = False) -> None:
    """Options before any command."""


def _completed(incomplete: str) -> list[str]:
    """Recipe names with this prefix, for shell completion."""
    from strop.catalogue.record import recipe_files

    return sorted(name for name in recipe_files() if name.startswith(incomplete))


@app.command(context_settings=PASS_ON, add_help_option=False)
def train(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[RECIPE] [FIELD=VALUE ...]", autocompletion=_completed)
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the run folder.")] = "",
    runs: Runs = Path("runs"),
    resume: Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="Resume a run.")] = None,
    changed_anyway: Annotated[
        bool, typer.Option("--changed-anyway", help="With --resume: resume even if data, code or model changed.")
    ] = False,
    trust: Trust = False,
    track: Annotated[
        str, typer.Option("--track", help="tensorboard, wandb, trackio, mlflow, swanlab; comma-separated.")
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")] = False,
    place: Annotated[str, typer.Option("--place", help="Where engines run: inline, process or ray.")] = "inline",
    engines: Annotated[
        int, typer.Option("--engines", min=1, help="Number of engines with --place process or ray.")
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and print the run; start nothing.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Train a model: `strop train grpo steps=50 env=compose:1`. --help lists recipes and their fields."""
    from strop.cli.fields.arguments import parse_words, refuse_mistyped

    typed = parse_words(words or [])
    if typed.wants_help:
        _show_help(typed.recipe if typed.names_recipe else "")
        return
    if resume is None:
        refuse_mistyped(typed)
    from strop.cli.commands.train import StartOptions, resume_run, start_run

    if resume is not None:
        placed = [f"--place {place}"] if place != "inline" or engines > 1 else []
        code = resume_run(resume, [*(words or []), *placed], quiet, changed_anyway, trust, dry_run)
    else:
        code = start_run(typed, StartOptions(name, runs, track, place, engines, dry_run, trust), quiet)
    raise typer.Exit(code)


def _show_help(recipe: str) -> None:
    """Print the help of `strop train`: the fields of a recipe, or the list of recipes."""
    if recipe:
        from strop.cli.fields.field_help import show_fields

        show_fields(recipe)
    else:
        from strop.cli.fields.recipe_help import show_recipes

        show_recipes()


@app.command("eval")
def evaluate(
    model: Model = "pocket",
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-w", help="`arithmetic:3`; join several with + or repeat. Default: those of the run."),
    ] = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Held-out tasks per environment.")] = 64,
    rollouts: Annotated[int, typer.Option("--rollouts", min=0, help="Rollouts per task; 0: the largest k.")] = 0,
    k: Annotated[str, typer.Option("--k", help="Values of k for pass@k, comma-separated.")] = "1,4",
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0.0, help="Default: the run's, or 1.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Limit per completion. Default: the run's, or 64.")
    ] = None,
    against: Annotated[
        str, typer.Option("--against", metavar="MODEL", help="Second model, compared on the same tasks.")
    ] = "",
    plan: Annotated[
        float,
        typer.Option("--plan", min=0.0, max=100.0, help="Points; prints how many tasks detect such a difference."),
    ] = 0.0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Use held-out tasks that the run never measured.")] = False,
    trust: Trust = False,
    seed: Seed = 0,
    threads: Threads = 1,
    device: Device = "cpu",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """avg@k, maj@k and pass@k with 95% intervals on held-out tasks, by environment and level."""
    from strop.cli.commands.evaluate import EvaluationRequest, evaluate_model

    how = (temperature, max_tokens, seed, threads, device, against, plan, fresh, trust)
    evaluate_model(EvaluationRequest(model, tuple(env or ()), tasks, rollouts, k, *how), as_json)


@app.command()
def chat(
    model: Model = "pocket",
    temperature: Annotated[float, typer.Option("--temperature", min=0.0)] = 0.7,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Limit per completion.")] = 128,
    seed: Seed = 0,
    device: Device = "cpu",
    debug: Debug = False,
) -> None:
    """Chat with a model in the terminal."""
    from strop.cli.commands.chat import talk

    talk(model, temperature, max_tokens, seed, device)


@app.command()
def serve(
    model: Model = "pocket",
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free port.")] = 8000,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Limit per completion.")] = 1024,
    is_open: Annotated[bool, typer.Option("--open", help="Accept connections from other machines.")] = False,
    names: Annotated[list[str] | None, typer.Option("--name", help="Further host name that clients may use.")] = None,
    device: Device = "cpu",
    debug: Debug = False,
) -> None:
    """Serve a model by HTTP: chat completions, responses, messages. API key: STROP_TOKEN, else one is printed."""
    from strop.cli.commands.serve import Serving
    from strop.cli.commands.serve import serve as serve_model

    serve_model(Serving(model, host, port, max_tokens, device=device, is_open=is_open, names=tuple(names or ())))


@app.command("runs")
def list_runs(
    root: Annotated[Path, typer.Argument(metavar="[DIR]")] = Path("runs"), as_json: AsJson = False, debug: Debug = False
) -> None:
    """List runs with their recipe, steps, held-out accuracy, time and state."""
    from strop.cli.commands.runs import show_runs

    show_runs(root, as_json)


@app.command()
def report(run: Annotated[Path, typer.Argument(metavar="RUN")], debug: Debug = False) -> None:
    """Write the report.html of a run again."""
    from strop.cli.commands.runs import rewrite_report

    rewrite_report(run)


@app.command()
def watch(
    root: Annotated[Path, typer.Argument(metavar="[RUN|FOLDER]")] = Path("runs"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free port.")] = 8100,
    debug: Debug = False,
) -> None:
    """Live dashboard of a run or a folder of runs: current activity, curves, rollouts, comparisons."""
    from strop.cli.commands.watch import watch_runs

    watch_runs(root, port)


@app.command()
def show(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    rollout: Annotated[str, typer.Argument(metavar="[ROLLOUT]", help="Rollout id, such as 12/0.")] = "",
    step: Annotated[int, typer.Option("--step", help="Step of the rollouts; default: the last one.")] = 0,
    by: Annotated[
        str, typer.Option("--by", help="Colour tokens by advantage, probability, ratio, version or none.")
    ] = "advantage",
    debug: Debug = False,
) -> None:
    """Show rollouts as conversations: one by its id, or the best and the worst of a step."""
    from strop.cli.commands.show import show_rollouts

    show_rollouts(run, rollout, step, by)


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")] = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Retrain a run from its ledger and compare the weights bit by bit; uses no engine, environment or reward."""
    from strop.cli.commands.replay import replay_run

    raise typer.Exit(replay_run(run, quiet, trust))


@app.command()
def why(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    stacks: Annotated[
        bool, typer.Option("--stacks/--no-stacks", help="Print the stack of every thread and task.")
    ] = True,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Explain why a run makes no progress: which part waits for which, for how long, with stacks."""
    from strop.cli.commands.why import explain

    explain(run, stacks, as_json)


from strop.cli import experiments, run_outputs  # noqa: E402, F401 (help lists commands in the order of their definition)


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 the run failed, 2 wrong usage or configuration, 130 interrupted."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        app()
    except StropError as error:
        if "--debug" in sys.argv:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, _REFUSALS) else 1)
    except (sqlite3.Error, OSError) as error:
        if "--debug" in sys.argv or not (message := _message(error)):
            raise
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)


def _message(error: sqlite3.Error | OSError) -> str:
    """The file that cannot be read or written, and why; empty for any other error."""
    if isinstance(error, sqlite3.Error):
        return f"the ledger cannot be read: {error}"
    return f"{error.strerror}: {error.filename}" if error.filename else ""
