"""The command `strop`: what can be asked, and how errors are told. The work stands in one file per subcommand.

Nothing heavy is imported before a subcommand needs it, so that `strop --help` answers at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from strop.errors import BusyError, ConfigurationError, DataError, ModelError, StropError

_REFUSALS = (ConfigurationError, ModelError, DataError, BusyError)  # nothing was started
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
app = typer.Typer(
    name="strop",
    help="RL post-training for language models. Start with: [bold]strop train[/bold]",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Model = Annotated[str, typer.Argument(help="A model folder, a run folder (its newest checkpoint), or `pocket`.")]
Runs = Annotated[Path, typer.Option("--runs", help="Where run folders are.")]
Seed = Annotated[int, typer.Option("--seed", help="Of tasks and sampling.")]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Processor threads.")]
Device = Annotated[str, typer.Option("--device", help="cpu, or cuda for the GPU.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"strop {version('strop')}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which it is.")]


@app.callback()
def _strop(version: Version = False) -> None:
    """What can be asked before any command."""


@app.command(context_settings=_PASS_ON, add_help_option=False)
def train(
    words: Annotated[list[str] | None, typer.Argument(metavar="[RECIPE] [FIELD=VALUE ...]")] = None,
    name: Annotated[str, typer.Option("--name", help="Of the run folder.")] = "",
    runs: Runs = Path("runs"),
    resume: Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a run.")] = None,
    changed_anyway: Annotated[
        bool, typer.Option("--changed-anyway", help="With --resume: although its data, code or model changed.")
    ] = False,
    track: Annotated[str, typer.Option("--track", help="tensorboard, wandb, trackio; several joined by ,")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
    place: Annotated[str, typer.Option("--place", help="Where engines compute: inline, process or ray.")] = "inline",
    engines: Annotated[int, typer.Option("--engines", min=1, help="How many, where they are placed.")] = 1,
    debug: Debug = False,
) -> None:
    """Train a model: `strop train grpo steps=50 world=compose:1`. Lists recipes and their fields with --help."""
    from strop.cli.words import parse_words, refuse_mistyped

    wish = parse_words(words or [])
    if wish.wants_help:
        _show_help(wish.recipe if wish.names_recipe else "")
        return
    if resume is None:
        refuse_mistyped(wish)
    from strop.cli.train import resume_run, start_run

    if resume is not None:
        moved = [f"--place {place}"] if place != "inline" or engines > 1 else []
        code = resume_run(resume, [*(words or []), *moved], quiet, changed_anyway)
    else:
        code = start_run(wish, name, runs, track, quiet, place, engines)
    raise typer.Exit(code)


def _show_help(recipe: str) -> None:
    """Of `strop train`: the fields of a recipe, or the recipes."""
    if recipe:
        from strop.cli.fields import show_fields

        show_fields(recipe)
    else:
        from strop.cli.describe import show_recipes

        show_recipes()


@app.command("eval")
def evaluate(
    model: Model = "pocket",
    world: Annotated[
        list[str] | None,
        typer.Option(
            "--world", "-w", help="`arithmetic:3`; several joined by + or repeated. Default: those of the run."
        ),
    ] = None,
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Held-out tasks of each world.")] = 64,
    attempts: Annotated[int, typer.Option("--attempts", min=0, help="Per task; 0: as many as the largest k.")] = 0,
    k: Annotated[str, typer.Option("--k", help="Which pass@k, joined by commas.")] = "1,4",
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0.0, help="Default: that of the run, or 1.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Of one reply. Default: that of the run, or 64.")
    ] = None,
    seed: Seed = 0,
    threads: Threads = 1,
    device: Device = "cpu",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Unbiased pass@k with 95% intervals on held-out tasks, by world and level."""
    from strop.cli.evaluate import Question, evaluate_model

    question = Question(model, tuple(world or ()), tasks, attempts, k, temperature, max_tokens, seed, threads, device)
    evaluate_model(question, as_json)


@app.command()
def chat(
    model: Model = "pocket",
    temperature: Annotated[float, typer.Option("--temperature", min=0.0)] = 0.7,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one reply.")] = 128,
    seed: Seed = 0,
    device: Device = "cpu",
    debug: Debug = False,
) -> None:
    """Talk to a model."""
    from strop.cli.chat import talk

    talk(model, temperature, max_tokens, seed, device)


@app.command()
def serve(
    model: Model = "pocket",
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: one that is free.")] = 8000,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one reply, at most.")] = 1024,
    is_open: Annotated[bool, typer.Option("--open", help="Let other machines in.")] = False,
    device: Device = "cpu",
    debug: Debug = False,
) -> None:
    """Answer programs: chat completions, responses and messages; the key is STROP_TOKEN, or one that is printed."""
    from strop.cli.serve import Serving
    from strop.cli.serve import serve as serve_model

    serve_model(Serving(model, host, port, max_tokens, device=device, is_open=is_open))


@app.command("runs")
def list_runs(
    root: Annotated[Path, typer.Argument(metavar="[DIR]")] = Path("runs"), as_json: AsJson = False, debug: Debug = False
) -> None:
    """List runs: what they were and what came of them."""
    from strop.cli.runs import show_runs

    show_runs(root, as_json)


@app.command()
def report(run: Annotated[Path, typer.Argument(metavar="RUN")], debug: Debug = False) -> None:
    """Write a run's report.html again."""
    from strop.cli.runs import rewrite_report

    rewrite_report(run)


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    debug: Debug = False,
) -> None:
    """Train a run again from its ledger alone and compare the bits: no engine, no world, no rewards."""
    from strop.cli.replay import replay_run

    raise typer.Exit(replay_run(run, quiet))


@app.command()
def why(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    stacks: Annotated[bool, typer.Option("--stacks/--no-stacks", help="What every thread and task does.")] = True,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Why does nothing happen? Who waits for whom, for how long, and where everything stands."""
    from strop.cli.why import explain

    explain(run, stacks, as_json)


@app.command()
def recipes(
    asked: Annotated[str, typer.Argument(metavar="[CLASS|WORD]")] = "",
    debug: Debug = False,
) -> None:
    """List recipes: all, those of a class, or those in whose description a word stands."""
    from strop.cli.describe import list_recipes

    list_recipes(asked)


@app.command()
def papers(
    key: Annotated[str, typer.Argument(metavar="[KEY]")] = "", as_json: AsJson = False, debug: Debug = False
) -> None:
    """Which papers are here; of one its claim, our reading of it, mechanisms, fields, tests and effect."""
    from strop.cli.papers import show_papers

    show_papers(key, as_json)


@app.command()
def effect(
    key: Annotated[str, typer.Argument(metavar="KEY", help="An experiment: a key of effects/, or a file.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="[FIELD=VALUE ...]", help="device=cuda")] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="How many; each runs all three arms.")] = 6,
    tokens: Annotated[int, typer.Option("--tokens", min=0, help="Generated per run; 0: as the experiment says.")] = 0,
    folder: Annotated[Path | None, typer.Option("--effects", help="Where experiments are.")] = None,
    runs: Runs = Path("runs/effects"),
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Runs side by side; 0: as many as cores allow.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Even a result that cost more.")] = False,
    debug: Debug = False,
) -> None:
    """Does a mechanism do what its paper claims? Treatment, control and negative control at equal tokens."""
    from strop.start.forks import warm

    warm()  # its imports take seconds, and so do those that follow
    from strop.cli.effect import run_effect

    run_effect(key, words or [], seeds, tokens, folder, runs, jobs, overwrite)


@app.command()
def compare(
    words: Annotated[list[str], typer.Argument(metavar="ARM ARM ... [FIELD=VALUE ...]")],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many; each runs every arm.")] = 3,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Generated by each run.")] = 80_000,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Runs side by side; 0: as many as cores allow.")] = 0,
    name: Annotated[str, typer.Option("--name", help="Of the folder.")] = "",
    runs: Runs = Path("runs/compare"),
    debug: Debug = False,
) -> None:
    """Recipes, settings ("grpo minibatches=4") or run folders beside each other: a table, then one page with curves."""
    from strop.start.forks import warm

    warm()
    from strop.cli.compare import compare as run_comparison

    run_comparison(words, seeds, tokens, jobs, runs, name)


@app.command(context_settings=_PASS_ON)
def simulate(
    words: Annotated[list[str], typer.Argument(metavar="SAMPLER|RECIPE [FIELD=VALUE ...]")],
    world: Annotated[str, typer.Option("--world", "-w", help="A scenario, several joined by commas, or all.")] = "all",
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="How many.")] = 6,
    belief: Annotated[str, typer.Option("--belief", help="In place of the recipe's, by its file or class.")] = "",
    lag: Annotated[int, typer.Option("--lag", min=0, help="Steps between an attempt and its evidence.")] = 0,
    bias: Annotated[float, typer.Option("--bias", help="First show attempts of a policy so much worse.")] = 0.0,
    lies: Annotated[bool, typer.Option("--lies", help="Permute levels over tasks.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What a curriculum gains over uniform choice on a simulated learner: seconds, no language model."""
    from strop.cli.simulate import scenarios_of
    from strop.cli.simulate import simulate as run_simulation

    run_simulation(words, scenarios_of(world, lag, bias, lies), seeds, as_json, belief)


@app.command("attack", context_settings=_PASS_ON)
def attack_reward(
    words: Annotated[list[str], typer.Argument(metavar="REWARD|RECIPE|FILE.py:FUNCTION [FIELD=VALUE ...]")],
    world: Annotated[list[str] | None, typer.Option("--world", "-w", help="As of eval; default: all bundled.")] = None,
    replies: Annotated[int, typer.Option("--replies", min=1, help="In each world.")] = 1000,
    seed: Seed = 0,
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, help="For each reply; longer fails.")] = 5.0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What do hostile replies earn from a reward? Exits with 1 where one earns what only a right answer should."""
    from strop.cli.attack import attack

    raise typer.Exit(attack(words, world or (), replies, seed, seconds, as_json))


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
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
