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
from pathlib import Path
from typing import Any

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_mean import GroupMean
from strop.train.losses.reinforce import Reinforce
from tests.recipes.every import every_other_run, every_run
from tests.test_defaults import default_of

TABLE = Path(__file__).parent / "parts"
PARTS = (
    *("advantage", "losses", "reduction", "gates", "correction", "rewards", "sampler", "budget", "pace", "strategy"),
    *("belief", "writer"),
    *("agent", "values", "buffer", "trainer", "sampling", "groups_per_step", "minibatches", "epochs", "streams"),
    *("engine", "context", "evaluation", "steps", "seed", "checkpoint_every", "threads"),
)


def parts_of(run: Run) -> dict[str, str]:
    """The text of each part; of a warm-up, too."""
    found = {name: spelled(getattr(run, name)) for name in PARTS} | {"lag": repr(run.pace.lag)}
    warmup = {} if run.warmup is None else parts_of(run.warmup)
    return found | {f"warmup.{name}": text for name, text in warmup.items()}


def spelled(part: Any) -> str:
    """Like `repr`, without fields that have their default."""
    if isinstance(part, tuple):
        return f"({', '.join(map(spelled, part))})"
    if not is_dataclass(part) or isinstance(part, type):
        return repr(part)
    values = {each.name: getattr(part, each.name) for each in fields(part) if each.init}
    told = {each.name for each in fields(part) if each.init and values[each.name] != default_of(each)}
    return f"{type(part).__name__}({', '.join(f'{k}={spelled(v)}' for k, v in values.items() if k in told)})"


def made() -> dict[str, dict[str, str]]:
    """A plain run's parts; of each recipe those that differ, and what becomes of them if all it takes is changed."""
    plain = parts_of(Setting().run("plain", GroupMean(), (Reinforce(),)))
    found = {"plain": plain}
    others = every_other_run()
    for name, run in every_run().items():
        parts, other = parts_of(run), parts_of(others[name])
        own = {part: text for part, text in parts.items() if plain.get(part) != text}
        found[name] = own | {f"other {part}": text for part, text in other.items() if parts.get(part) != text}
    return found


def test_every_recipe_is_made_of_its_parts() -> None:
    table, found = kept(), made()
    differences = [
        f"{recipe}.{part}\n  table: {table.get(recipe, {}).get(part, '(as in plain)')}"
        f"\n  now:   {found.get(recipe, {}).get(part, '(as in plain)')}"
        for recipe in sorted(table.keys() | found.keys())
        for part in sorted(table.get(recipe, {}).keys() | found.get(recipe, {}).keys())
        if table.get(recipe, {}).get(part) != found.get(recipe, {}).get(part)
    ]
    differences += [f"{recipe} is in one of both only" for recipe in sorted(table.keys() ^ found.keys())]
    assert not differences, "\n".join(differences) + "\nIf this is meant: python -m tests.recipes.test_parts"


def test_the_table_is_plain_text() -> None:
    assert not any(re.search(r" at 0x|/home/|/work/|/tmp/", path.read_text()) for path in TABLE.glob("*.json"))


def kept() -> dict[str, dict[str, str]]:
    return {path.stem: json.loads(path.read_text()) for path in TABLE.glob("*.json")}


def renew() -> None:
    found = made()
    TABLE.mkdir(exist_ok=True)
    for gone in kept().keys() - found.keys():
        (TABLE / f"{gone}.json").unlink()
    for name, parts in found.items():
        (TABLE / f"{name}.json").write_text(json.dumps(parts, indent=1) + "\n")


if __name__ == "__main__":
    renew()
