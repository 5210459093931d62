"""Commands on the outputs of a run (model, rollouts, checkpoints), and on configurations of other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strop.cli.app import Debug, app

Run = Annotated[Path, typer.Argument(metavar="RUN")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Output path; must not exist yet.")]


@app.command("export")
def export_model(
    run: Run,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder or file to write.")] = None,
    what: Annotated[str, typer.Option("--as", help="model, adapter or gguf.")] = "model",
    step: Annotated[str, typer.Option("--step", help="Checkpoint: newest, best or a step number.")] = "newest",
    push: Annotated[str, typer.Option("--push", metavar="OWNER/NAME", help="Upload to the Hugging Face hub.")] = "",
    public: Annotated[bool, typer.Option("--public", help="With --push: for everybody, not private.")] = False,
    debug: Debug = False,
) -> None:
    """Write a run's model as a Hugging Face folder, only its adapters, or as one GGUF file; or push it to the hub."""
    from strop.cli.commands.export import export_and_push

    export_and_push(run, out, what, step, push, public)


@app.command()
def rollouts(
    run: Annotated[Path, typer.Argument(metavar="RUN|FILE", help="A run, or a file that --as wrote.")],
    out: Out,
    library: Annotated[
        str, typer.Option("--as", help="Tokens and log-probabilities too, as verifiers, trl or tinker has them.")
    ] = "",
    debug: Debug = False,
) -> None:
    """Write every rollout of a run as a row, also for other libraries."""
    from strop.cli.commands.rollouts import write_portable, write_rollouts

    if library:
        write_portable(run, out, library)
    else:
        write_rollouts(run, out)


@app.command("clean")
def clean_up(
    root: Annotated[Path, typer.Argument(metavar="[RUN|FOLDER]")] = Path("runs"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them; without it, only list them.")] = False,
    debug: Debug = False,
) -> None:
    """Remove checkpoints that no run needs: all but the newest complete one and the best one of each run."""
    from strop.cli.commands.runs import clean

    clean(root, yes)


@app.command("convert")
def convert_configuration(
    path: Annotated[Path, typer.Argument(metavar="CONFIG.yaml", help="Of TRL (GRPO, DPO) or verl; or a script.")],
    debug: Debug = False,
) -> None:
    """Print the strop command of a TRL or verl configuration."""
    from strop.cli.commands.convert import convert

    convert(path)
