"""Needs of an environment: what is missing is refused before the run, with what would supply it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.table import Table
from strop.environments.needs import PREFERENCES, RELATIVES, SOLUTIONS, unmet
from strop.errors import ConfigurationError
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named


def table(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def questions(count: int = 24) -> list[dict[str, Any]]:
    return [{"prompt": f"what is {n} plus {n + 1}?", "answer": str(2 * n + 1)} for n in range(count)]


def test_what_lacks_something_is_named_once_with_its_remedy() -> None:
    assert unmet([SOLUTIONS, RELATIVES], [Arithmetic(2)]) == []
    told = unmet([SOLUTIONS], [KeyValue(1), KeyValue(2), Arithmetic(1)])
    assert len(told) == 1 and "keyvalue has no worked solutions: add a column" in told[0]


def test_preferences_are_looked_for_in_several_rows(tmp_path: Path) -> None:
    rows = [{"prompt": f"say {n}", "chosen": f"{n}", "rejected": "no"} for n in range(20)]
    assert unmet([PREFERENCES], [Table(table(tmp_path, *rows))]) == []
    assert "rejected" in unmet([PREFERENCES], [Table(table(tmp_path, *questions()))])[0]


@pytest.mark.parametrize("recipe", ["guide", "ghpo", "seele"])
def test_recipes_that_give_hints_refuse_environments_without_solutions(recipe: str) -> None:
    with pytest.raises(ConfigurationError, match=r"keyvalue has no (worked solutions|hints)"):
        check(build(recipe_named(recipe), {"env": "keyvalue:2"}))
    check(build(recipe_named(recipe), {"env": "arithmetic:2"}))
