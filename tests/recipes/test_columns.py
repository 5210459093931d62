"""Columns of a table reach the recipes of papers that need them, or are named before the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.filter.judges.checklist_items import items_of_row
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named
from strop.recipes.guide.ampo import TRACES
from strop.recipes.guide.pta_grpo.recipe import planned
from strop.recipes.rollout.nudgerl import _contexts_of
from strop.recipes.select.rag_rl import Citations, PassageRows
from strop.types import Task
from tests.control.asking import group_of


def saved(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def asked(count: int = 90, **columns: Any) -> list[dict[str, Any]]:
    return [{"question": f"Who wrote book {n}?", "answer": f"Ann {n}"} | columns for n in range(count)]


BOOKS = {"passages": ["Ann wrote it.", "Bob reads.", "It rains.", "It is a book."], "gold": [0, "It is a book."]}
TEACHERS = {"teacher_a": "The cover says so.\nAnn.", "teacher_b": "<think>Look inside.</think>Ann"}
PLANNED = {"completion": "The cover says so.\nIt was Ann.", "plan": "Look at the cover."}
SMALL = {"groups_per_step": 2, "group_size": 4}


@pytest.mark.parametrize(
    ("recipe", "columns", "fields", "said"),
    [
        ("rag_rl", BOOKS, {}, "columns `passages`"),
        ("ampo", TEACHERS, {"teachers": "columns"}, "`teacher_1`"),
        ("pta_grpo", PLANNED, {}, "column `plan`"),
    ],
)
def test_columns_that_a_recipe_needs_are_read_or_named(
    tmp_path: Path, recipe: str, columns: dict[str, Any], fields: dict[str, Any], said: str
) -> None:
    check(build(recipe_named(recipe), {"env": saved(tmp_path, *asked(**columns)), **SMALL, **fields}))
    with pytest.raises(ConfigurationError, match=said):
        check(build(recipe_named(recipe), {"env": saved(tmp_path, *asked()), **SMALL, **fields}))


def test_passages_are_numbered_and_citations_counted(tmp_path: Path) -> None:
    table = Table(saved(tmp_path, *asked(20, **BOOKS)))
    task = PassageRows(table, 1).task(0)
    lines = task.messages[0].content.split("\n")
    assert sum(line.startswith("[") for line in lines) == 3, "two gold passages and one other"
    gold = [line[1] for line in lines if line.endswith(("Ann wrote it.", "It is a book."))]
    other = next(line[1] for line in lines if line.endswith(("reads.", "rains.")))
    group = group_of(task, [0.0] * 3)
    said = [f"By [{gold[0]}] and [{gold[1]}]: Ann", f"By [{gold[0]}] and [{other}]", "Ann"]
    for rollout, text in zip(group.rollouts, said, strict=True):
        turn = rollout.turns[0]
        rollout.turns = (type(turn)(**(vars(turn) | {"message": type(turn.message)("assistant", text)})),)
    assert Citations()(group) == [6.0, 5.0 / 2 - 2.0 + 1.0, 0.0]
    assert PassageRows(table, 8).num_tasks() == table.num_tasks()


def test_traces_of_teachers_are_those_of_the_row(tmp_path: Path) -> None:
    assert TRACES.unmet([Table(saved(tmp_path, *asked(20, **TEACHERS)))]) == []
    assert "add columns such as `teacher_1`" in TRACES.unmet([Table(saved(tmp_path, *asked(20)))])[0]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["It names pears.", "80: It is short."], [(7.0, "It names pears."), (80.0, "It is short.")]),
        ([{"criterion": "It lies.", "points": -3}], [(-3.0, "It lies.")]),
        ("5: It rhymes.\n- It is kind.", [(5.0, "It rhymes."), (7.0, "It is kind.")]),
        (None, []),
    ],
)
def test_a_rubric_of_a_row_is_read_in_its_usual_forms(given: Any, found: list[tuple[float, str]]) -> None:
    task = Task((), "", "rows", columns=json.dumps({"rubric": given}))
    assert [(item.weight, item.text) for item in items_of_row(task, "rubric", 7.0)] == found


def test_the_plan_of_a_row_stands_before_its_demonstration() -> None:
    assert planned("Ann, says the cover.", "Look at the cover.").startswith("<plan>Look at the cover.</plan>Ann")
    assert planned("<plan>Look.</plan>Ann") == "<plan>Look.</plan>Ann"


def test_contexts_of_a_row_stand_before_its_question() -> None:
    row = {"context": ["Think of the cover", "Think of the year"]}
    assert _contexts_of(Task((), "", "rows", columns=json.dumps(row))) == tuple(row["context"])
    assert _contexts_of(Task((), "", "rows")) == ()
