"""Settings of a run as a flat table: `trainer.learning_rate`, `warmup.steps`; recipe.py is parsed, not executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from strop.observe.run_files.run_info import fields_of

_PROBABILITY = {"seed"}  # no setting: the random seed
_MEASURING = {"evaluation", "checkpoint_every", "threads"}  # how a run is looked at, and no setting of it either


def settings_of(recipe: Path) -> dict[str, str]:
    """Every plain field of a recipe.py by its path, and the class of every part."""
    return dict(pair for name, node in fields_of(recipe).items() for pair in _walk(name, node))


def _walk(path: str, node: ast.expr) -> Iterator[tuple[str, str]]:
    if path.rpartition(".")[2] in _PROBABILITY | _MEASURING:
        return
    if isinstance(node, ast.Call):
        yield path, ast.unparse(node.func)
        for word in node.keywords:
            yield from _walk(f"{path}.{word.arg}", word.value)
    elif isinstance(node, ast.Tuple | ast.List) and any(isinstance(item, ast.Call) for item in node.elts):
        for number, item in enumerate(node.elts):
            yield from _walk(f"{path}.{number}", item)
    else:
        yield path, ast.unparse(node)


def varied(tables: Sequence[Mapping[str, str]], absent: str = "–") -> dict[str, list[str]]:
    """The settings in which runs differ, with the value of each run; several that always differ together are one."""
    names = sorted({name for table in tables for name in table})
    columns = {name: [table.get(name, absent) for table in tables] for name in names}
    together: dict[tuple[int, ...], list[str]] = {}
    for name, column in columns.items():
        if len(set(column)) > 1:
            together.setdefault(tuple(column.index(value) for value in column), []).append(name)
    return {" and ".join(_shortened(own)): columns[own[0]] for own in together.values()}


def _shortened(names: Sequence[str], most: int = 2) -> list[str]:
    return [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
