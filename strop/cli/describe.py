"""What `strop train --help` says: the recipes, or the fields of one."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.cli.conversion import describe
from strop.cli.overrides import DEFAULT_RECIPE, find_recipe, make_run, paths
from strop.recipes import Recipe, find_recipes, parameters_of

_OPTIONS = (
    ("--name NAME", "of the run folder; default RECIPE-seedN"),
    ("--runs DIR", "where run folders are made; default runs"),
    ("--resume RUN", "go on with a run from its newest checkpoint"),
    ("--track NAMES", "also log to tensorboard, wandb or trackio"),
    ("--quiet", "print the result only"),
    ("--debug", "show the traceback of an error"),
)


def show_recipes(console: Console) -> int:
    """All recipes, each with its line."""
    console.print("[bold]strop train[/] \\[RECIPE] \\[FIELD=VALUE ...] \\[OPTIONS]\n", highlight=False)
    table = _table("Recipes")
    for name, recipe in find_recipes().items():
        mark = " [green](default)[/]" if name == DEFAULT_RECIPE else ""
        table.add_row(f"[bold cyan]{name}[/]{mark}", first_line(recipe))
    console.print(table)
    console.print("\nA recipe may also be a Python file that defines `run` or a function that returns a Run.\n")
    _show_options(console)
    console.print("\nFields of a recipe: [bold]strop train grpo --help[/]", highlight=False)
    return 0


def show_fields(name: str, console: Console) -> int:
    """What can be set in one recipe."""
    recipe = find_recipe(name)
    parameters = parameters_of(recipe)
    console.print(f"[bold]strop train {name}[/] \\[FIELD=VALUE ...]\n{first_line(recipe)}\n", highlight=False)
    table = _table("Fields", "Kind", "Default")
    for parameter in parameters.values():
        table.add_row(f"[cyan]{parameter.name}[/]", describe(parameter.type), _plain(parameter.default))
    console.print(table)
    console.print()
    parts = _table("More fields, and those of parts", "Now")
    for path, value in paths(make_run(recipe, {})):
        if path not in parameters and not is_dataclass(value) and not list(paths(value)) and value != ():
            parts.add_row(f"[cyan]{path}[/]", _plain(value))
    console.print(parts)
    console.print()
    _show_options(console)
    return 0


def first_line(recipe: Recipe) -> str:
    lines = (inspect.getdoc(recipe) or "").splitlines()
    return escape(lines[0]) if lines else ""


def _show_options(console: Console) -> None:
    table = _table("Options")
    for option, meaning in _OPTIONS:
        table.add_row(f"[cyan]{option}[/]", meaning)
    console.print(table)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", title_justify="left")
    for title in titles if len(titles) > 1 else (*titles, ""):
        table.add_column(title, overflow="fold")
    return table


def _plain(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return escape(value if isinstance(value, str) else repr(value))
