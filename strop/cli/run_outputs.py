"""Commands about what a run leaves behind: its model, its rollouts, its checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strop.cli.app import Debug, app

Run = Annotated[Path, typer.Argument(metavar="RUN")]
Out = Annotated[Path, typer.Option("--out", "-o", help="What is written; it must not exist.")]


@app.command("export")
def export_model(
    run: Run,
    out: Out,
    what: Annotated[str, typer.Option("--as", help="model, adapter or gguf.")] = "model",
    step: Annotated[str, typer.Option("--step", help="Of which checkpoint: newest, best or a number.")] = "newest",
    debug: Debug = False,
) -> None:
    """Write a run's model as a Hugging Face folder, its adapters alone, or one GGUF file."""
    from strop.cli.commands.export import export

    export(run, out, what, step)


@app.command()
def rollouts(run: Run, out: Out, debug: Debug = False) -> None:
    """Write every rollout of a run as a row of a .jsonl or .parquet file."""
    from strop.cli.commands.rollouts import write_rollouts

    write_rollouts(run, out)


@app.command("clean")
def clean_up(
    root: Annotated[Path, typer.Argument(metavar="[RUN|FOLDER]")] = Path("runs"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them; else they are only counted.")] = False,
    debug: Debug = False,
) -> None:
    """Remove checkpoints that no run needs any more: all but the newest whole one and the best of each."""
    from strop.cli.commands.clean import clean

    clean(root, yes)
