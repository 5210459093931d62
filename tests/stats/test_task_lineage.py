"""Written tasks: where they come from, and that they change no metric of their parents."""

from __future__ import annotations

import json

import numpy as np

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.support.bandit_arms import BanditArms
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.lookup import env_of
from strop.environments.data.rows import columns_of, task_of
from strop.stats.task_lineage import ancestor, child, is_written, plain, unplain
from strop.types import Group, Message, Task, Tool, ToolCall
from tests.building import make_group

PARENT = Task(
    (
        Message("system", "be brief"),
        Message("user", "47+12+30=?"),
        Message("assistant", "", (ToolCall("add", "{}"),)),
        Message("user", "try again"),
    ),
    "89",
    "arithmetic",
    4,
    tools=(Tool("add", "adds"),),
)


def test_a_child_keeps_what_the_environment_needs_to_serve_it() -> None:
    made = child(PARENT, "59+30=?", "89")
    assert [message.content for message in made.messages] == ["be brief", "59+30=?"]
    assert (made.source, made.level, made.tools, made.answer) == ("arithmetic", 4, PARENT.tools, "89")
    assert is_written(made) and not is_written(PARENT)
    assert child(PARENT, "47+12+30=?", "89").id != PARENT.id, "the same words are still another task"


def test_the_way_back_leads_to_the_task_of_a_env_however_often_it_was_rewritten() -> None:
    made = PARENT
    for number in range(50):
        made = child(made, f"{number}+30=?", "89")
    assert ancestor(made) == ancestor(PARENT) == PARENT.id
    assert len(made.id) == len(child(PARENT, "1+2=?", "3").id), "ids do not grow"
    ids = {child(PARENT, text, answer).id for text in ("1+2=?", "2+1=?") for answer in ("3", "4")}
    assert len(ids) == 4


def test_a_task_comes_back_from_json_as_it_was() -> None:
    made = child(PARENT, "59+30=?", "89")
    assert unplain(json.loads(json.dumps(plain(made)))) == made
    row = task_of({"prompt": "1+1=?", "answer": 2, "rubric": ["short"]}, "sums")
    assert unplain(json.loads(json.dumps(plain(row)))) == row


def test_a_child_of_a_row_is_a_row_of_its_own() -> None:
    """Its columns are those from which the answer came, with its own answer: what rewards read by name is never the
    parent's.
    """
    shots = [{"role": role, "content": text} for role, text in (("user", "1+1=?"), ("assistant", "2"))]
    row = {
        "messages": [{"role": "system", "content": "be brief"}, *shots, {"role": "user", "content": "2+2=?"}],
        "ground_truth": 4,
        "completion": "2+2=4, so 4",
        "rubric": ["says 4"],
    }
    made = child(task_of(row, "sums"), "3+3=?", "6")
    assert [message.content for message in made.messages] == ["be brief", "3+3=?"]
    assert columns_of(made) == {"ground_truth": "6"} and made.answer == "6"
    assert columns_of(child(task_of({"prompt": "a", "completion": "b"}, "texts"), "c", "d")) == {}


def test_evidence_of_a_written_task_is_none_of_its_parents_kind() -> None:
    estimator, env = Counts(), Arithmetic(4)
    parent = env.task(0)
    group = make_group([1.0, 1.0, 0.0])
    written = Group(1, child(parent, "1+2=?", "3"), group.rollouts)
    estimator.observe(written)
    np.testing.assert_allclose(estimator.predict([parent, written.task], 0)[0], [0.5, 3 / 5])
    estimator.observe(Group(2, parent, group.rollouts[2:]))
    np.testing.assert_allclose(estimator.predict([parent, written.task], 0)[0], [1 / 3, 3 / 5])
    shelves = BanditArms((Arithmetic(3), env))
    assert shelves.arm(parent) == 1 and shelves.arm(written.task) is None
    assert env_of((Arithmetic(3), env), written.task) is env
