"""Functions and rows given to `recipe` in Python become files that a run can be executed with again."""

from __future__ import annotations

import re
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from strop import recipe
from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.filter.rewards.python_function import PythonFunction
from strop.recipes.given_objects import _sources
from strop.types import Task

ROWS = [{"prompt": f"{n}+7=?", "answer": n + 7, "unit": "m"} for n in range(20)]


def last_number(completion: str, answer: str) -> float:
    return float(re.findall(r"\d+", completion)[-1:] == [answer])


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def table_of(**fields: Any) -> Table:
    (env,) = recipe("grpo", **fields).envs
    assert isinstance(env, Table)
    return env


def test_rows_become_a_table_and_the_same_rows_the_same_table() -> None:
    env = table_of(env=ROWS)
    assert env.num_tasks() + env.num_tasks(heldout=True) == len(ROWS) and env.path == table_of(env=list(ROWS)).path
    split = table_of(env={"train": ROWS[:15], "test": ROWS[15:]})
    assert (split.num_tasks(), split.num_tasks(heldout=True)) == (15, 5)


def test_a_function_of_a_file_is_named_by_it() -> None:
    (reward, _) = recipe("grpo", env=ROWS, reward=last_number).rewards
    assert isinstance(reward, PythonFunction) and reward.path == f"{Path(__file__)}:last_number"
    two = recipe("grpo", env=ROWS, reward=[last_number, "env"]).rewards
    assert len(two) == 2


def test_a_function_of_a_notebook_takes_along_what_it_uses(tmp_path: Path) -> None:
    """As a cell defines it: its module is __main__, and its source is known."""
    cell = tmp_path / "cell.py"
    cell.write_text(
        "import re\nfrom math import sqrt\nLEAST = 4\n\n\n"
        "def found(text):\n    return re.findall(r'[0-9]+', text)\n\n\n"
        "def near(completion, answer):\n    return sqrt(LEAST) * (found(completion)[-1:] == [answer])\n"
    )
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell.read_text(), str(cell), "exec"), names)
    (reward, *_) = recipe("grpo", env=ROWS, reward=names["near"]).rewards
    assert isinstance(reward, PythonFunction) and reward.path.startswith(str(tmp_path))
    task = Task((), "12", "rows")
    assert isinstance(reward._function, FunctionType) and reward._function("is 12", task.answer) == 2.0
    assert set(_sources(names["near"], {})) == {"near", "found", "re", "LEAST", "sqrt"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"learning_rate": "1e-4"}, "learning_rate must be a number, got str '1e-4': leave out the quotes"),
        ({"steps": 2.5}, "steps must be a whole number, got float 2.5"),
        ({"group_size": True}, "group_size must be a whole number, got bool True"),
        ({"engine": "foo"}, "engine must be one of own, vllm, got 'foo'"),
        ({"context": "512"}, "context must be a whole number"),
        ({"reward": lambda completion: 1.0}, "got a lambda"),
        ({"reward": 3}, "reward takes a function made with def"),
        ({"reward": []}, "reward is an empty list"),
        ({"env": 3}, "env takes a name, a file, a list of dicts"),
        ({"env": []}, "got no rows"),
        ({"env": [1, 2]}, "got a row of type int"),
        ({"env": [{"prompt": "1", "answer": object()}]}, "a row cannot be written as JSON"),
        ({"lr": 1e-4}, "here that is learning_rate"),
    ],
)
def test_a_wrong_type_is_one_sentence(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)) as refused:
        recipe("grpo", **fields)
    assert "\n" not in str(refused.value)


def test_a_closure_is_refused() -> None:
    due = "4"

    def equal(completion: str) -> float:
        return float(completion == due)

    with pytest.raises(ConfigurationError, match="within another function"):
        recipe("grpo", env=ROWS, reward=equal)
