"""Commands on the outputs of a run: model, rollouts, checkpoints."""

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
    out: Out,
    what: Annotated[str, typer.Option("--as", help="model, adapter or gguf.")] = "model",
    step: Annotated[str, typer.Option("--step", help="Checkpoint: newest, best or a step number.")] = "newest",
    debug: Debug = False,
) -> None:
    """Write a run's model as a Hugging Face folder, only its adapters, or as one GGUF file."""
    from strop.cli.commands.export import export

    export(run, out, what, step)


@app.command()
def rollouts(run: Run, out: Out, debug: Debug = False) -> None:
    """Write every rollout of a run as one row of a .jsonl or .parquet file."""
    from strop.cli.commands.rollouts import write_rollouts

    write_rollouts(run, out)


@app.command("clean")
def clean_up(
    root: Annotated[Path, typer.Argument(metavar="[RUN|FOLDER]")] = Path("runs"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them; without it, only list them.")] = False,
    debug: Debug = False,
) -> None:
    """Remove checkpoints that no run needs: all but the newest complete one and the best one of each run."""
    from strop.cli.commands.clean import clean

    clean(root, yes)
