"""What generators, reflectors and judges are asked: fields that `--help` shows, set like others and kept in the run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from strop.capabilities import outermost
from strop.cli.fields.overrides import make_run, paths
from strop.recipes import recipe_named
from strop.roles import Asks
from strop.run import Run
from strop.storage.run_source import to_source
from strop.types import Message, Task

GENERATORS = {"webrl": "similar", "dreamgym": "harder", "socratic_zero": "similar", "eva": "similar", "sws": "solved"}
GENERATORS |= {"serl": "similar", "clpo": "simpler", "teams_rl": "breadth"}
REFLECTORS = {"lightsearcher": "memory", "rtv_pdr": "note", "xskill": "experience", "sage_abstraction": "plan"}
REFLECTORS |= {"core": "insight", "contextevolve": "summary"}
JUDGES = {"gvl": "rewards.0.prompt", "spct_votes": "rewards.0.prompt", "bavt": "strategy.prompt"}
JUDGES |= {"fapo": "rewards.0.prompt"}
OWN = "Say something of your own."
TASK = Task((Message("user", "Ann has 4 pens and buys 5 more. How many has she?"),), "9", "own")


def made(recipe: str, folder: Path, **fields: Any) -> Run:
    (folder / "own.py").write_text(
        "asked = []\n\n\ndef part(prompt):\n    asked.append(prompt)\n    raise ValueError(prompt[-200:])\n"
    )
    rows = [{"prompt": f"Add 7 to {n}, then 5.", "answer": str(n + 12)} for n in range(40)]
    (folder / "own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return make_run(recipe_named(recipe), fields)


@pytest.mark.parametrize(("recipe", "request_name"), [*GENERATORS.items(), *REFLECTORS.items()])
def test_a_request_in_own_words_is_what_is_asked(recipe: str, request_name: str, tmp_path: Path) -> None:
    role = "generator" if recipe in GENERATORS else "teacher"
    place = "task_generator" if recipe in GENERATORS else "strategy"
    part = f"{tmp_path}/own.py:part"
    made(recipe, tmp_path)  # which writes the files
    env = {} if recipe == "dreamgym" else {"env": f"{tmp_path}/own.jsonl"}
    run = made(recipe, tmp_path, **env, **{role: part, f"{place}.prompts.{request_name}": OWN})
    ((_, asking),) = outermost(getattr(run, place), Asks)
    with pytest.raises(Exception, match=OWN):
        asyncio.run(asking.try_clients(TASK))
    assert OWN in to_source(run, "own")


@pytest.mark.parametrize(("recipe", "field"), JUDGES.items())
def test_a_judges_question_is_a_field(recipe: str, field: str, tmp_path: Path) -> None:
    assert OWN in to_source(made(recipe, tmp_path, **{field: OWN}), "own")
    usual = dict(paths(made(recipe, tmp_path)))[field]
    assert "Answer" in usual or "as in" in usual or "one line each" in usual, "the format is asked for"
