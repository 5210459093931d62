"""Every mechanism whose record has a switch that takes away only the idea: the metric that shows that it acts moves
with the idea and rests without it, for three seeds, on the bundled environment and on a user's tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from strop.catalogue.acts import Acts, read_acts, read_break
from strop.catalogue.record import records
from strop.cli.fields.overrides import make_run
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.launch.running.launch import launch
from strop.recipes import parameters_of, recipe_named
from strop.run import Run
from tests.recipes.test_acts import RATE, ROLLOUTS, SIZES, rows_of, shortened

RECORDS = {name: record for name, record in records().items() if record.breaks}
QUICK = {"thinktuning"}  # in `make test`, with one seed
SEEDS = (0, 1, 2)
# refused on tables of single questions, before the run
REFUSED = {"sage_skills", "lightsearcher", "dreamgym", "goal_conditioned_rm", "prlcoder", "rag_rl", "gvl", "sem"}
REFUSED |= {"router_r1"}
ROWS = 48
# whom a recipe asks, where its rules know bundled tasks alone: a function of the user
PARTS = {
    "ampo": "teachers",
    "thinktuning": "teacher",
    "xskill": "teacher",
    "lightsearcher": "teacher",
    "webrl": "generator",
    "think_rm": "judge",
    "gvl": "judge",
}
FUNCTIONS = """
import re


def numbers(text):
    return [int(each) for each in re.findall(r"[0-9]+", re.findall(r"[0-9+]+=", text)[-1])]


def teacher(prompt):
    return "add: begin with the largest number"


def teachers(prompt):
    return f"<think>{'+'.join(map(str, numbers(prompt)))}={sum(numbers(prompt))}</think>{sum(numbers(prompt))}"


def generator(prompt, key):
    first, second = 2 + key % 7, 3 + key % 5
    return f"Sure! Here is a new problem:\\n[task]\\n{first}+{second}=?\\n[answer]\\n{first + second}"


def judge(prompt, key):
    return str(1 + key % 3)
"""


def table(folder: Path, level: int) -> str:
    """Sums as a user would bring them: a question, an answer and a worked solution in each row."""
    env, path = Arithmetic(level), folder / f"sums-{level}.jsonl"
    tasks = [env.task(index) for index in range(ROWS)]
    rows = [
        {"prompt": task.messages[-1].content, "answer": task.answer, "completion": env.solution(task)} for task in tasks
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def run_of(name: str, acts: Acts, seed: int, changes: dict[str, str]) -> Run:
    recipe = recipe_named(name)
    size = min(SIZES["group_size"], parameters_of(recipe)["group_size"].default)
    sizes = SIZES | {"steps": 3, "group_size": size, "groups_per_step": ROLLOUTS // size, "learning_rate": RATE}
    fields = {key: str(value) for key, value in sizes.items()} | {"seed": str(seed)}
    run = make_run(recipe, fields | dict(acts.fields) | changes)
    run.warmup = shortened(run.warmup)
    run.allow_constant_completions = True  # of which some seeds of a game have too many
    return run


def at_rest(name: str, seed: int, changes: dict[str, str], folder: Path) -> list[str]:
    """The metrics of the mechanism that rest in a short run."""
    acts = read_acts(RECORDS[name].acts)
    if acts.fields.get("folder") == "PEER":
        shared = str(folder / "shared")
        peer = {key: value for key, value in changes.items() if key == "env"} | {"folder": shared, "node": "peer"}
        launch(run_of(name, acts, seed, peer), folder / "peers", f"seed{seed}")
        changes = changes | {"folder": shared}
    rows = rows_of(run_of(name, acts, seed, changes), folder, "run")
    return [str(metric) for metric in acts.at_rest(rows)]


def shown() -> list[ParameterSet]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.breaks) for name in RECORDS]


def separated(name: str, seeds: Sequence[int], changes: dict[str, str], folder: Path) -> dict[int, Any]:
    """By seed the metrics that rest with the idea and without it."""
    without = changes | dict(read_break(RECORDS[name].breaks).fields)
    return {
        seed: (
            at_rest(name, seed, changes, folder / f"{seed}"),
            at_rest(name, seed, without, folder / f"{seed}-without"),
        )
        for seed in seeds
    }


@pytest.mark.parametrize("name", RECORDS)
def test_the_switch_is_one_of_the_recipe(name: str) -> None:
    acts = read_acts(RECORDS[name].acts)
    intact, broken = (run_of(name, acts, 0, changes) for changes in ({}, dict(read_break(RECORDS[name].breaks).fields)))
    assert replace(intact, warmup=None) != replace(broken, warmup=None)


@pytest.mark.parametrize("name", shown())
def test_the_mechanism_rests_without_its_idea(name: str, tmp_path: Path) -> None:
    found = separated(name, SEEDS[: 1 if name in QUICK else None], {}, tmp_path)
    assert all(not intact and broken for intact, broken in found.values()), found


@pytest.mark.breaks
@pytest.mark.parametrize("name", RECORDS)
def test_and_so_it_is_on_tables_of_a_user(name: str, tmp_path: Path) -> None:
    changes = {"env": f"{table(tmp_path, 3)}+{table(tmp_path, 6)}"}
    if (part := PARTS.get(name)) is not None:
        (tmp_path / "parts.py").write_text(FUNCTIONS)
        changes[part] = f"{tmp_path / 'parts.py'}:{part}"
    if name in REFUSED:
        with pytest.raises(ConfigurationError):
            at_rest(name, 0, changes, tmp_path)
        return
    found = separated(name, SEEDS, changes, tmp_path)
    assert all(not intact and broken for intact, broken in found.values()), found


def test_tables_hold_worked_solutions(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in Path(table(tmp_path, 3)).read_text().splitlines()]
    assert len({row["prompt"] for row in rows}) > ROWS // 2 and all("=" in row["completion"] for row in rows)
