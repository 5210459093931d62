"""What `strop train RECIPE --help` says: every field that can be set, with the comment behind it."""

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
from strop.recipes import parameters_of


def show_fields(name: str) -> None:
    """What can be set in one recipe."""
    console = Console(highlight=False)
    recipe, path = find_recipe(name), recipe_files().get(name, Path(name))
    parameters = parameters_of(recipe)
    run = make_run(recipe, {key: key.upper() for key, parameter in parameters.items() if parameter.is_required})
    console.print(f"[bold]strop train {name}[/] \\[FIELD=VALUE ...]\n{escape(read_record(path).line)}\n")
    said = {key: field.comment for key, field in common_fields().items()}
    own = said | {field.name: field.comment for field in recipe_parameters(path) if field.comment}
    rows = table("Fields", "Kind", "Default", "")
    for each in parameters.values():
        rows.add_row(f"[cyan]{each.name}[/]", describe(each.type), plain(each.default), escape(own.get(each.name, "")))
    console.print(rows)
    console.print()
    parts = table("More fields, and those of parts", "Now", "")
    for key, value in paths(run):
        if key not in parameters and not is_dataclass(value) and not list(paths(value)):
            parts.add_row(f"[cyan]{key}[/]", plain(value), escape(_comment(run, key, said)))
    console.print(parts)
    console.print()
    show_options(console)


def _comment(run: Any, key: str, said: Mapping[str, str]) -> str:
    """What the class that holds a field says of it."""
    *above, name = key.split(".")
    if not above:
        return said.get(name, "")
    owner = dict(paths(run))[".".join(above)]
    for kind in type(owner).__mro__:
        source = inspect.getsourcefile(kind) if kind.__module__ != "builtins" else None
        found = {field.name: field.comment for field in class_fields(Path(source), kind.__name__)} if source else {}
        if name in found:
            return found[name]
    return ""


def plain(value: Any) -> str:
    """A value as it would be typed."""
    if value is inspect.Parameter.empty:
        return "required"
    if value == ():
        return "none"
    if isinstance(value, tuple) and all(isinstance(each, str | int | float) for each in value):
        return escape(",".join(map(str, value)))
    return escape(value if isinstance(value, str) else repr(value))
