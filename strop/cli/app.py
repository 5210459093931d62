"""Typer application and the options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TOKEN = "STROP_TOKEN"  # the variable that holds the secret of a server
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
app = typer.Typer(
    name="strop",
    help="RL post-training for language models. Start with: [bold]strop train[/bold]",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Model = Annotated[str, typer.Argument(help="A model folder, a run folder (its newest checkpoint), or `pocket`.")]
Runs = Annotated[Path, typer.Option("--runs", help="Folder of all run folders.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of tasks and sampling.")]
Threads = Annotated[int, typer.Option("--threads", min=1, help="CPU threads.")]
Device = Annotated[str, typer.Option("--device", help="cpu, or cuda for the GPU.")]
Trust = Annotated[bool, typer.Option("--trust", help="Execute a recipe.py that you did not write here.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
