"""Demonstrations of rows: plan, thought, steps and answer; a bare answer demonstrates nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strop.capabilities import Demonstrates
from strop.environments.data.table import Table
from strop.environments.format.demonstrations import demonstration
from strop.environments.format.hints import beginnings, hinted, working
from strop.errors import ConfigurationError
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named
from strop.types import Task

GSM8K = (
    "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nNatalia sold 48+24 = <<48+24=72>>72 clips altogether.\n#### 72"
)
MATH = (
    "We add the equations:\n\\begin{align*}\nx+y &= 3.5 \\\\\nx-y &= 1\n\\end{align*}\nThis gives $2x = 4.5$. "
    "Thus $x = \\boxed{2.25}$."
)
TRACE = (
    "<plan>compare first</plan><think>Dr. Smith has 3.5 kg, i.e. 3500 g. He gives away 500 g.</think>"
    "So he keeps the rest. <answer>3000</answer>"
)


def table(folder: Path, *rows: dict[str, Any], **options: Any) -> Table:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Table(str(path), heldout_share=0.0, **options)


@pytest.mark.parametrize(
    ("text", "answer", "steps"),
    [
        (GSM8K, "72", 2),
        (MATH, "2.25", 3),
        (TRACE, "3000", 3),
        ("Since $2x=6$, we get $x=\\boxed{3}$.", "3", 1),
        ("There are 3 apples.\nThere are 4 pears.\n\n**Answer:** 7", "7", 2),
        ("She pays $5 and then $3. Therefore, the answer is $8.", "8", 1),
    ],
)
def test_worked_text_is_taken_apart(text: str, answer: str, steps: int) -> None:
    found = demonstration(text)
    assert (found.answer, len(found.steps)) == (answer, steps)
    assert found.is_worked and not any(f"{{{answer}}}" in step or "####" in step for step in found.steps)
    assert all(text.startswith(found.beginning(count)) for count in range(steps + 1))


def test_thought_and_plan_are_those_of_the_text_or_of_its_row() -> None:
    found = demonstration(TRACE)
    assert found.plan == "compare first" and found.thought.startswith("Dr. Smith") and "<" not in found.hint(9)
    assert demonstration("Plan: count, then add.\n\nThere are 3. There are 4 more.").plan == "count, then add."
    assert demonstration(GSM8K, plan="halve, then add").plan == "halve, then add"
    assert demonstration("[THINK]Count the pears. Add them.[/THINK]7").steps == ("Count the pears.", "Add them.")


@pytest.mark.parametrize("text", ["72", "\\boxed{3}", "#### 4", "The answer is 4.", "Paris", "<think></think>7", ""])
def test_a_bare_answer_is_no_demonstration(text: str) -> None:
    assert not demonstration(text).is_worked


def test_a_table_gives_hints_beginnings_and_demonstrations(tmp_path: Path) -> None:
    env = table(tmp_path, {"question": "How many clips?", "answer": GSM8K})
    task = env.task(0)
    assert working([env], task).endswith("altogether.") and "72 clips" in working([env], task)
    assert hinted([env], task, 1)[-1].content.endswith("\n\nHint: Natalia sold 48/2 = <<48/2=24>>24 clips in May.")
    assert beginnings([env], task, "<think>") == [GSM8K.split("\n")[0], GSM8K.rpartition("\n")[0]]
    episode = env.episode()
    assert isinstance(episode, Demonstrates) and env.check(task, env.solution(task)) == 1.0


def test_a_solution_without_the_answer_is_ended_as_the_rule_asks(tmp_path: Path) -> None:
    row = {"question": "4+5-2=?", "solution": "First add 4 and 5.\nThen take 2 away.", "answer": "7"}
    for rule in ("number", "boxed", "hashes", "text"):
        env = table(tmp_path, row, rule=rule, answer_column="answer")
        assert env.check(env.task(0), env.solution(env.task(0))) == 1.0, rule


def test_a_hint_column_is_read_before_the_solution(tmp_path: Path) -> None:
    env = table(tmp_path, {"question": "4+5=?", "answer": "9", "hint": ["Use your fingers.", "Count on from 5."]})
    task = env.task(0)
    assert (env.hint(task, 1), env.hint(task, 2)) == ("Use your fingers.", "Use your fingers.\nCount on from 5.")
    assert env.demonstration(task) is None


def test_rows_without_a_demonstration_are_counted_before_the_run(tmp_path: Path) -> None:
    rows = [{"question": f"{n}+1=?", "answer": str(n + 1), "solution": f"Count on from {n} by one."} for n in range(30)]
    del rows[7]["solution"]
    env = table(tmp_path, *rows).path
    told = r"rows has no worked solutions in 1 of 2\d tasks, as '7\+1=\?': add a column `solution` or `completion`"
    with pytest.raises(ConfigurationError, match=told):
        check(build(recipe_named("ghpo"), {"env": env, "columns": ("question", "answer")}))
    with pytest.raises(ConfigurationError, match="no demonstrations in 1 of"):
        check(build(recipe_named("sft"), {"env": env, "columns": ("question", "answer")}))


@pytest.mark.parametrize("recipe", ["ghpo", "seele", "guide", "adcl_egsr", "dereason", "sft"])
def test_recipes_take_their_steps_from_prose(tmp_path: Path, recipe: str) -> None:
    more = "One is lost. One is found. One is sold. "
    rows = [
        {"question": f"How many clips, {n}?", "answer": n % 2 * more + GSM8K.replace("48", str(n)), "level": n % 2}
        for n in range(80)
    ]
    check(build(recipe_named(recipe), {"env": table(tmp_path, *rows).path}))
    bare = table(tmp_path, *[{"question": f"{n}+1=?", "answer": str(n + 1)} for n in range(30)]).path
    with pytest.raises(ConfigurationError, match=r"column `(solution|completion|hint|score)`"):
        check(build(recipe_named(recipe), {"env": bare}))


def test_tasks_without_rows_have_no_demonstration(tmp_path: Path) -> None:
    env = table(tmp_path, {"question": "4+5=?", "answer": "9"})
    assert env.hint(Task((), "9", "rows"), 3) == ""
