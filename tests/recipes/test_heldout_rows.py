"""No recipe trains on a held-out row of a user's table, whoever brings it: the ledger of a short run says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from strop.catalogue.acts import Acts, read_acts
from strop.catalogue.record import records
from strop.control.task_generators.support.validation import holds
from strop.environments.data.heldout_split import HeldOutSide
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.launch.checks.prompt_lengths import leave_out_measured
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.system.sapo_sharing import SharedGroup, publish
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Task
from tests.recipes.test_acts import FOLDERS, LEFT_OUT, coder, former_run, peer, pilot_run, small  # noqa: F401
from tests.recipes.test_acts import another_model as another_model
from tests.recipes.test_breaks import table

QUICK = {"clpo"}  # in `make test`


def trained(folder: RunFolder) -> list[Task]:
    """The different tasks whose rollouts were trained on."""
    with closing(sqlite3.connect(folder.ledger)) as database:
        ids = [name for (name,) in database.execute("SELECT DISTINCT task FROM rollouts WHERE fate = 'trained'")]
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        return [ledger.task(name) for name in ids]
    finally:
        ledger.close()


def shown() -> list[ParameterSet]:
    found = [name for name in records() if name not in LEFT_OUT]
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.breaks) for name in found]


def held_out(path: str) -> list[Task]:
    env = Table(path)
    return [env.task(index, heldout=True) for index in range(env.num_tasks(heldout=True))]


@pytest.mark.parametrize("name", shown())
def test_no_held_out_row_is_trained_on(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    paths = [table(tmp_path, level) for level in (3, 6)]
    acts = read_acts(records()[name].acts)
    fields = {key: value for key, value in acts.fields.items() if key not in ("env", "steps")}
    folders = {word: request.getfixturevalue(FOLDERS[word]) for word in FOLDERS.keys() & set(fields.values())}
    try:
        run = small(name, Acts((), fields | {"env": "+".join(paths)}), folders)
        launch(run, tmp_path, "run")
    except ConfigurationError:
        return  # it says before the run what it needs and a table of sums has not
    made = trained(RunFolder(tmp_path / "run"))
    asked = [task.messages[-1].content for path in paths for task in held_out(path)]
    told = ["\n".join(message.content for message in task.messages) for task in made]
    assert made and not [text for text in told for question in asked if holds(text, question)]


def test_what_a_peer_shares_of_the_held_out_rows_is_left_alone(tmp_path: Path) -> None:
    """A peer may have split the same table in another way."""
    path = table(tmp_path, 3)
    env, shared = Table(path), tmp_path / "shared"
    for number, task in enumerate([*held_out(path), env.task(0)]):
        publish(shared, "peer", number, SharedGroup(task, ((task.answer,), ("no idea",))))
    sizes = {
        "groups_per_step": 4,
        "group_size": 2,
        "heldout_tasks": 1,
        "heldout_every": 0,
        "max_tokens": 24,
        "steps": 2,
    }
    run = build(recipe_named("sapo_sharing"), {"env": path, "folder": str(shared), "own": 1, "foreign": 3} | sizes)
    launch(run, tmp_path, "run")
    made, heldout = trained(RunFolder(tmp_path / "run")), HeldOutSide([env])
    assert [task for task in made if task.id.startswith("@")], "what the peer shares of its train rows is trained on"
    assert not [task for task in made if heldout.holds_out(task)]


def test_what_one_table_measures_no_other_one_trains_on(tmp_path: Path) -> None:
    path = table(tmp_path, 3)
    question = held_out(path)[0].messages[-1].content
    other = tmp_path / "other.jsonl"
    other.write_text(
        "".join(f'{{"prompt": "{text}", "answer": "1"}}\n' for text in (question, "1+2=?", "2+3=?", "3+4=?"))
    )
    run = build(recipe_named("grpo"), {"env": f"{path}+{other}"})
    found = leave_out_measured(run)
    served = {env.task(index).messages[-1].content for env in run.envs[1:] for index in range(env.num_tasks() or 0)}
    if question in {task.messages[-1].content for task in held_out(str(other))}:
        assert not found
    else:
        assert [str(each) for each in found] == [f"1 of 4 train rows of {other} are held-out rows of another table"]
    assert question not in served
    (tmp_path / "same.jsonl").write_text(Path(path).read_text())
    assert not leave_out_measured(build(recipe_named("grpo"), {"env": f"{path}+{tmp_path / 'same.jsonl'}"}))


def test_a_written_task_may_not_ask_what_is_held_out(tmp_path: Path) -> None:
    path = tmp_path / "shots.jsonl"
    shots = '{"role": "user", "content": "1+1=?"}, {"role": "assistant", "content": "2"}'
    path.write_text(
        "".join(
            f'{{"messages": [{shots}, {{"role": "user", "content": "{number}+3=?"}}], "answer": "{number + 3}"}}\n'
            for number in range(20)
        )
    )
    env = Table(str(path))
    side, (heldout, *_) = HeldOutSide([env]), held_out(str(path))
    assert side.has(heldout) and not side.has(env.task(0)) and not side.holds_out(env.task(0))
    written = Task(heldout.messages[-1:], heldout.answer, env.name)
    assert side.holds_out(written) and not side.has(written)
