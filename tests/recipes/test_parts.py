"""Every recipe's parts, pinned: a recipe that loses a loss, a gate or a number is not noticed by running it.

The table beside this file (`parts/`, a file for each recipe) holds the parts of a plain run, and of each recipe those
that differ, spelled with what they set (what they leave at its default, tests/defaults.json has); then the same with
every parameter changed, which must reach its part. To renew it on purpose, and look at what `git diff` says:
python -m tests.recipes.test_parts

It walks strop.recipes .
"""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest

from strop.catalogue.record import recipe_files
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.reinforce import Reinforce
from tests.recipes.every import other_run, plain_run
from tests.test_defaults import default_of

TABLE = Path(__file__).parent / "parts"
PARTS = (
    *(
        "advantage",
        "losses",
        "reduction",
        "gates",
        "correction",
        "rewards",
        "sampler",
        "budget",
        "admission",
        "strategy",
    ),
    *("estimator", "task_generator"),
    *("agent", "values", "buffer", "trainer", "sampling", "groups_per_step", "minibatches", "epochs", "streams"),
    *("engine", "context", "evaluation", "steps", "seed", "checkpoint_every", "threads"),
)


def parts_of(run: Run) -> dict[str, str]:
    """The text of each part; of a warm-up, too."""
    found = {name: spelled(getattr(run, name)) for name in PARTS} | {"lag": repr(run.admission.lag)}
    warmup = {} if run.warmup is None else parts_of(run.warmup)
    return found | {f"warmup.{name}": text for name, text in warmup.items()}


def spelled(part: Any) -> str:
    """Like `repr`, without fields that have their default."""
    if isinstance(part, tuple):
        return f"({', '.join(map(spelled, part))})"
    if isfunction(part):
        return f"{part.__module__}:{part.__qualname__}"
    if not is_dataclass(part) or isinstance(part, type):
        return repr(part)
    values = {each.name: getattr(part, each.name) for each in fields(part) if each.init}
    told = {each.name for each in fields(part) if each.init and values[each.name] != default_of(each)}
    return f"{type(part).__name__}({', '.join(f'{k}={spelled(v)}' for k, v in values.items() if k in told)})"


def plain() -> dict[str, str]:
    """What every recipe has unless it says otherwise."""
    return parts_of(Setting().run("plain", GroupMean(), (Reinforce(),)))


def made(name: str) -> dict[str, str]:
    """The parts of a recipe that differ from a plain run's, and what becomes of them if all it takes is changed."""
    usual, parts, other = plain(), parts_of(plain_run(name)), parts_of(other_run(name))
    own = {part: text for part, text in parts.items() if usual.get(part) != text}
    return own | {f"other {part}": text for part, text in other.items() if parts.get(part) != text}


@pytest.mark.parametrize("name", [*recipe_files(), "plain"])
def test_every_recipe_is_made_of_its_parts(name: str) -> None:
    table, found = kept(name), plain() if name == "plain" else made(name)
    differences = [
        f"{part}\n  table: {table.get(part, '(as in plain)')}\n  now:   {found.get(part, '(as in plain)')}"
        for part in sorted(table.keys() | found.keys())
        if table.get(part) != found.get(part)
    ]
    assert not differences, "\n".join(differences) + "\nIf this is meant: python -m tests.recipes.test_parts"


def test_the_table_has_no_other_recipes() -> None:
    assert {path.stem for path in TABLE.glob("*.json")} == {*recipe_files(), "plain"}


def test_the_table_is_plain_text() -> None:
    assert not any(re.search(r" at 0x|/home/|/work/|/tmp/", path.read_text()) for path in TABLE.glob("*.json"))


def kept(name: str) -> dict[str, str]:
    path = TABLE / f"{name}.json"
    found: dict[str, str] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def renew() -> None:
    found = {"plain": plain()} | {name: made(name) for name in recipe_files()}
    TABLE.mkdir(exist_ok=True)
    for path in TABLE.glob("*.json"):
        if path.stem not in found:
            path.unlink()
    for name, parts in found.items():
        (TABLE / f"{name}.json").write_text(json.dumps(parts, indent=1) + "\n")


if __name__ == "__main__":
    renew()
