"""Output of `strop train RECIPE --help`: every field that can be set, with the comment behind it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from strop.catalogue.fields import class_fields, common_fields, recipe_parameters
from strop.catalogue.record import read_record, recipe_files
from strop.cli.fields.overrides import find_recipe, make_run, paths
from strop.cli.fields.recipe_help import show_options, table
from strop.cli.fields.text_to_values import describe
from strop.generate.llm_clients.local_model import CHOICES
from strop.recipes import parameters_of
from strop.recipes.named_parts import KEY_VARIABLE

_NAMED = f"""
A named part is {CHOICES}; rules are for the bundled environments that they were written for.
Keys of endpoints come from the environment variable {KEY_VARIABLE}.
Each part is asked before the run, also with --dry-run.
"""


def show_fields(name: str) -> None:
    """Print the fields of one recipe."""
    console = Console(highlight=False)
    recipe, path = find_recipe(name), recipe_files().get(name, Path(name))
    parameters = parameters_of(recipe)
    run = make_run(recipe, {key: key.upper() for key, parameter in parameters.items() if parameter.is_required})
    console.print(f"[bold]strop train {name}[/] \\[FIELD=VALUE ...]\n{escape(read_record(path).line)}\n")
    common = {key: field.comment for key, field in common_fields().items()}
    own = common | {field.name: field.comment for field in recipe_parameters(path) if field.comment}
    rows = table("Fields", "Type", "Default", "")
    for each in parameters.values():
        rows.add_row(f"[cyan]{each.name}[/]", describe(each.type), plain(each.default), escape(own.get(each.name, "")))
    console.print(rows)
    console.print(escape(_NAMED) if any("named part" in text for text in own.values()) else "")
    parts = table("More fields, by part of the run", "Default", "")
    for key, value in paths(run):
        if key not in parameters and not is_dataclass(value) and not list(paths(value)):
            parts.add_row(f"[cyan]{key}[/]", plain(value), escape(_comment(run, key, common)))
    console.print(parts)
    console.print()
    show_options(console)


def _comment(run: Any, key: str, common: Mapping[str, str]) -> str:
    """Comment on a field in the source of its class."""
    *above, name = key.split(".")
    if not above:
        return common.get(name, "")
    owner = dict(paths(run))[".".join(above)]
    for kind in type(owner).__mro__:
        source = inspect.getsourcefile(kind) if kind.__module__ != "builtins" else None
        found = {field.name: field.comment for field in class_fields(Path(source), kind.__name__)} if source else {}
        if name in found:
            return found[name]
    return ""


def plain(value: Any) -> str:
    """Value as it would be typed on the command line."""
    if value is inspect.Parameter.empty:
        return "required"
    if value == ():
        return "none"
    if isinstance(value, tuple) and all(isinstance(each, str | int | float) for each in value):
        return escape(",".join(map(str, value)))
    return escape(value if isinstance(value, str) else repr(value))
