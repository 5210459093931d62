"""The command `strop`: what can be asked, and how errors are told. The work stands in one file per subcommand.

Nothing heavy is imported before a subcommand needs it, so that `strop --help` answers at once.
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


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"strop {version('strop')}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which it is.")]


@app.callback()
def _strop(version: Version = False) -> None:
    """What can be asked before any command."""


def _completed(incomplete: str) -> list[str]:
    """Recipes that begin so."""
    from strop.catalogue.record import recipe_files

    return sorted(name for name in recipe_files() if name.startswith(incomplete))


@app.command(context_settings=PASS_ON, add_help_option=False)
def train(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[RECIPE] [FIELD=VALUE ...]", autocompletion=_completed)
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Of the run folder.")] = "",
    runs: Runs = Path("runs"),
    resume: Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a run.")] = None,
    changed_anyway: Annotated[
        bool, typer.Option("--changed-anyway", help="With --resume: although its data, code or model changed.")
    ] = False,
    trust: Trust = False,
    track: Annotated[str, typer.Option("--track", help="tensorboard, wandb, trackio; several joined by ,")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
    place: Annotated[str, typer.Option("--place", help="Where engines compute: inline, process or ray.")] = "inline",
    engines: Annotated[int, typer.Option("--engines", min=1, help="How many, where they are placed.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, show the run, start nothing.")] = False,
    debug: Debug = False,
) -> None:
    """Train a model: `strop train grpo steps=50 env=compose:1`. Lists recipes and their fields with --help."""
    from strop.cli.fields.arguments import parse_words, refuse_mistyped

    wish = parse_words(words or [])
    if wish.wants_help:
        _show_help(wish.recipe if wish.names_recipe else "")
        return
    if resume is None:
        refuse_mistyped(wish)
    from strop.cli.commands.train import StartedAs, resume_run, start_run

    if resume is not None:
        moved = [f"--place {place}"] if place != "inline" or engines > 1 else []
        code = resume_run(resume, [*(words or []), *moved], quiet, changed_anyway, trust, dry_run)
    else:
        code = start_run(wish, StartedAs(name, runs, track, place, engines, dry_run, trust), quiet)
    raise typer.Exit(code)


def _show_help(recipe: str) -> None:
    """Of `strop train`: the fields of a recipe, or the recipes."""
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
        typer.Option("--env", "-w", help="`arithmetic:3`; several joined by + or repeated. Default: those of the run."),
    ] = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Held-out tasks of each environment.")] = 64,
    rollouts: Annotated[int, typer.Option("--rollouts", min=0, help="Per task; 0: as many as the largest k.")] = 0,
    k: Annotated[str, typer.Option("--k", help="Which pass@k, joined by commas.")] = "1,4",
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0.0, help="Default: that of the run, or 1.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Of one completion. Default: that of the run, or 64.")
    ] = None,
    against: Annotated[str, typer.Option("--against", metavar="MODEL", help="Another one, on the same tasks.")] = "",
    plan: Annotated[
        float, typer.Option("--plan", min=0.0, max=100.0, help="Points: how many tasks show such a difference.")
    ] = 0.0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Held-out tasks that the run never measured.")] = False,
    trust: Trust = False,
    seed: Seed = 0,
    threads: Threads = 1,
    device: Device = "cpu",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """avg@k, maj@k and pass@k with 95% intervals on held-out tasks, by environment and level."""
    from strop.cli.commands.evaluate import Question, evaluate_model

    how = (temperature, max_tokens, seed, threads, device, against, plan, fresh, trust)
    evaluate_model(Question(model, tuple(env or ()), tasks, rollouts, k, *how), as_json)


@app.command()
def chat(
    model: Model = "pocket",
    temperature: Annotated[float, typer.Option("--temperature", min=0.0)] = 0.7,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one completion.")] = 128,
    seed: Seed = 0,
    device: Device = "cpu",
    debug: Debug = False,
) -> None:
    """Talk to a model."""
    from strop.cli.commands.chat import talk

    talk(model, temperature, max_tokens, seed, device)


@app.command()
def serve(
    model: Model = "pocket",
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: one that is free.")] = 8000,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one completion, at most.")] = 1024,
    is_open: Annotated[bool, typer.Option("--open", help="Let other machines in.")] = False,
    names: Annotated[list[str] | None, typer.Option("--name", help="Host name by which clients ask it, too.")] = None,
    device: Device = "cpu",
    debug: Debug = False,
) -> None:
    """Answer programs: chat completions, responses and messages; the key is STROP_TOKEN, or one that is printed."""
    from strop.cli.commands.serve import Serving
    from strop.cli.commands.serve import serve as serve_model

    serve_model(Serving(model, host, port, max_tokens, device=device, is_open=is_open, names=tuple(names or ())))


@app.command("runs")
def list_runs(
    root: Annotated[Path, typer.Argument(metavar="[DIR]")] = Path("runs"), as_json: AsJson = False, debug: Debug = False
) -> None:
    """List runs: what they were and what came of them."""
    from strop.cli.commands.runs import show_runs

    show_runs(root, as_json)


@app.command()
def report(run: Annotated[Path, typer.Argument(metavar="RUN")], debug: Debug = False) -> None:
    """Write a run's report.html again."""
    from strop.cli.commands.runs import rewrite_report

    rewrite_report(run)


@app.command()
def watch(
    root: Annotated[Path, typer.Argument(metavar="[RUN|FOLDER]")] = Path("runs"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: one that is free.")] = 8100,
    debug: Debug = False,
) -> None:
    """A live page of a run, or of a folder of runs: what it does, curves, rollouts to read, comparisons."""
    from strop.cli.commands.watch import watch_runs

    watch_runs(root, port)


@app.command()
def show(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    rollout: Annotated[str, typer.Argument(metavar="[ROLLOUT]", help="Its id, such as 12/0.")] = "",
    step: Annotated[int, typer.Option("--step", help="Whose rollouts; the last where none is named.")] = 0,
    by: Annotated[
        str, typer.Option("--by", help="Colour tokens by advantage, probability, ratio, version or none.")
    ] = "advantage",
    debug: Debug = False,
) -> None:
    """Read rollouts as conversations: one, or the best and the worst of a step."""
    from strop.cli.commands.show import show_rollouts

    show_rollouts(run, rollout, step, by)


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Train a run again from its ledger alone and compare the bits: no engine, no environment, no rewards."""
    from strop.cli.commands.replay import replay_run

    raise typer.Exit(replay_run(run, quiet, trust))


@app.command()
def why(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    stacks: Annotated[bool, typer.Option("--stacks/--no-stacks", help="What every thread and task does.")] = True,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Why does nothing happen? Who waits for whom, for how long, and where everything stands."""
    from strop.cli.commands.why import explain

    explain(run, stacks, as_json)


@app.command()
def recipes(
    asked: Annotated[str, typer.Argument(metavar="[CLASS|WORD]")] = "",
    debug: Debug = False,
) -> None:
    """List recipes: all, those of a class, or those in whose description a word stands."""
    from strop.cli.fields.recipe_help import list_recipes

    list_recipes(asked)


@app.command()
def papers(
    key: Annotated[str, typer.Argument(metavar="[KEY]")] = "", as_json: AsJson = False, debug: Debug = False
) -> None:
    """Which papers are here; of one its claim, our reading of it, mechanisms, fields, tests and effect."""
    from strop.cli.commands.papers import show_papers

    show_papers(key, as_json)


from strop.cli import experiments, run_outputs  # noqa: E402, F401 (help shows commands in the order in which they are made)


def main() -> None:
    """The entry point: 0 done, 1 the run failed, 2 wrong usage or configuration, 130 interrupted."""
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
        if "--debug" in sys.argv or not (said := _told(error)):
            raise
        print(f"error: {said}", file=sys.stderr)
        sys.exit(1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)


def _told(error: sqlite3.Error | OSError) -> str:
    """Of a file that cannot be read or written, which one; nothing of any other error."""
    if isinstance(error, sqlite3.Error):
        return f"the ledger cannot be read: {error}"
    return f"{error.strerror}: {error.filename}" if error.filename else ""
