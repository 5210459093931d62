"""Tables with tests: programs run on them in the formats of the usual datasets, and are paid by the share passed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from strop.capabilities import Demonstrates
from strop.environments.code.cases import Cases, cases_of
from strop.environments.code.code_table import CodeTable
from strop.environments.code_execution import Finding, Trials, is_printed
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, DataError
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named
from strop.recipes.environments import parse_envs

HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'from typing import List\n\n\ndef doubled(xs: List[int]) -> List[int]:\n    """Double each."""\n',
    "canonical_solution": "    return [2 * x for x in xs]\n",
    "test": "METADATA = {}\n\ndef check(candidate):\n    assert candidate([1]) == [2]\n    assert candidate([]) == []\n"
    "    assert True, 'a note'\n    assert candidate([3, 4]) == [6, 8], 'two'\n",
    "entry_point": "doubled",
}
CLOSE_TO = {
    "prompt": 'def mean(xs):\n    """The mean."""\n',
    "canonical_solution": "    return sum(xs) / len(xs)\n",
    "test": "import math\ndef check(candidate):\n    assert math.isclose(candidate([1, 2]), 1.5)\n"
    "    for n in range(1, 4):\n        assert abs(candidate([n]) - n) < 1e-6\n"
    "    try:\n        candidate([])\n        assert 0 == 1\n    except ZeroDivisionError:\n        assert 1 == 1\n",
    "entry_point": "mean",
}
MBPP = {
    "text": "Write a function to find shared elements.",
    "code": "def shared(a, b):\n    return tuple(set(a) & set(b))",
    "test_setup_code": "",
    "test_list": [
        "assert set(shared((3, 4), (5, 4))) == set((4,))",
        "assert set(shared((1, 2), (3, 4))) == set()",
    ],
}
APPS = {
    "question": "Read n, then n numbers; print their sum.",
    "solutions": json.dumps(["n = int(input())\nprint(sum(map(int, input().split())))"]),
    "input_output": json.dumps({"inputs": ["2\n3 4\n", "1\n5\n"], "outputs": ["7\n", "5\n"]}),
}
APPS_CALL = {
    "question": "Add one.",
    "starter_code": "class Solution:\n    def addOne(self, n):",
    "solutions": json.dumps(["class Solution:\n    def addOne(self, n):\n        return n + 1"]),
    "input_output": json.dumps({"fn_name": "addOne", "inputs": [[1], [4]], "outputs": [[2], [5]]}),
}
LIVECODEBENCH = {
    "question_content": "Reverse the list.",
    "starter_code": "class Solution:\n    def rev(self, xs: List[int]) -> List[int]:\n        ",
    "public_test_cases": json.dumps([{"input": "[1, 2]", "output": "[2, 1]", "testtype": "functional"}]),
    "private_test_cases": "eJxrYJmqyAABPYEe",
    "metadata": json.dumps({"func_name": "rev"}),
    "code": "class Solution:\n    def rev(self, xs: List[int]) -> List[int]:\n        return xs[::-1]",
}
OWN = {
    "prompt": "Write a program that prints the double of each number it reads.",
    "tests": [{"input": "1\n2\n", "output": "2\n4"}, {"input": "5", "output": "10"}],
    "solution": "import sys\nfor line in sys.stdin:\n    print(2 * int(line))",
}
ROWS: dict[str, dict[str, Any]] = {
    "humaneval": HUMANEVAL,
    "close_to": CLOSE_TO,
    "mbpp": MBPP,
    "apps": APPS,
    "apps_call": APPS_CALL,
    "livecodebench": LIVECODEBENCH,
    "own": OWN,
}


def saved(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "code.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def table(folder: Path, *rows: dict[str, Any]) -> CodeTable:
    (env,) = parse_envs(saved(folder, *rows), table=Table("", heldout_share=0.0))
    assert isinstance(env, CodeTable)
    return env


def shares(env: CodeTable, *completions: str) -> list[float]:
    """Shares of passed tests of the first task, in one sandbox."""

    async def tried() -> list[float]:
        try:
            return [(await env.trials.of(each, cases_of(env.task(0)))).share for each in completions]
        finally:
            await env.trials.close()

    return asyncio.run(tried())


@pytest.mark.parametrize("name", ROWS)
def test_the_programs_of_the_usual_datasets_pass_their_tests(tmp_path: Path, name: str) -> None:
    env = table(tmp_path, ROWS[name])
    episode = env.episode()
    assert isinstance(episode, Demonstrates) and env.pays and env.is_answered
    right = env.solution(env.task(0))
    assert shares(env, right, "```python\ndef no(): pass\n```", "I do not know.") == [1.0, 0.0, 0.0]


def test_a_part_of_the_tests_earns_a_part(tmp_path: Path) -> None:
    assert shares(table(tmp_path, HUMANEVAL), "def doubled(xs): return []") == [pytest.approx(1 / 3)]
    assert shares(table(tmp_path, MBPP), "def shared(a, b): return (4,)") == [0.5]
    assert shares(table(tmp_path, OWN), "print(2)\nprint(4.0)") == [0.5]
    assert shares(table(tmp_path, CLOSE_TO), "def mean(xs): return xs[0]")[0] == pytest.approx(3 / 5)


def test_a_body_alone_and_imports_of_the_prompt_are_taken(tmp_path: Path) -> None:
    typed = "def doubled(xs: List[int]) -> List[int]:\n    return [x + x for x in xs]"
    assert shares(table(tmp_path, HUMANEVAL), typed) == [1.0]


def test_lists_are_no_tuples_where_an_assert_compares(tmp_path: Path) -> None:
    row = {"prompt": "A pair.", "tests": ["assert pair(1) == (1, 1)"]}
    assert shares(table(tmp_path, row), "def pair(x): return (x, x)", "def pair(x): return [x, x]") == [1.0, 0.0]


def test_expected_values_stay_outside_whatever_a_program_looks_at() -> None:
    look = "import gc\ndef f(x): return int('7654320') + 1 if str(int('7654320') + 1) in str(gc.get_objects()) else 0"
    checks = Cases("f", form="check", code="def check(candidate):\n    assert abs(candidate(1) - 7654321) < 1")
    plain = Cases("f", ("f(1)",), (7654321,), form="expression")
    fake = "class All(int):\n    __eq__ = __lt__ = __sub__ = lambda *_: True\ndef f(x): return All(3)"

    async def tried() -> list[Finding]:
        trials = Trials()
        try:
            return [(await trials.of(text, each)).finding for text in (look, fake) for each in (checks, plain)]
        finally:
            await trials.close()

    assert asyncio.run(tried()) == [Finding.WRONG] * 4


def test_prompts_name_what_the_tests_call(tmp_path: Path) -> None:
    task = table(tmp_path, {"prompt": "A pair.", "tests": ["assert pair(1) == (1, 1)"]}).task(0)
    assert task.messages[0].content.endswith("Your code should pass this test:\nassert pair(1) == (1, 1)")
    assert "class Solution" in table(tmp_path, APPS_CALL).task(0).messages[0].content
    assert table(tmp_path, HUMANEVAL).task(0).messages[0].content == HUMANEVAL["prompt"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"prompt": "?", "tests": "none yet"}, "holds no tests that can be run"),
        ({"prompt": "?", "tests": [3]}, "holds no tests: it needs assert lines"),
        ({"prompt": "?", "tests": [{"input": "3"}]}, "needs an `input` and an `output`"),
        ({"prompt": "?", "tests": "def check(candidate):\n    assert candidate(1)"}, "entry_point"),
    ],
)
def test_what_is_no_test_is_named_with_its_row(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said) as told:
        table(tmp_path, row).task(0)
    assert "code.jsonl:1" in str(told.value)


def test_printed_lines_are_compared_by_words_and_numbers() -> None:
    assert is_printed("1 2\n3.50\n", "1  2\n3.5") and not is_printed("1\n2", "1 2")
    assert not is_printed("1", "1.1") and not is_printed("01", "1") and not is_printed("", "0")


@pytest.mark.parametrize("recipe", ["grpo", "acecoder", "rltf", "prm_code", "prlcoder", "b_coder", "critique_coder"])
def test_recipes_of_programs_take_a_table(tmp_path: Path, recipe: str) -> None:
    rows = [MBPP | {"text": f"Write function number {n} to find shared elements."} for n in range(80)]
    check(build(recipe_named(recipe), {"env": saved(tmp_path, *rows)}))


@pytest.mark.parametrize("recipe", ["rltf", "prlcoder", "b_coder"])
def test_recipes_that_need_right_programs_say_so(tmp_path: Path, recipe: str) -> None:
    rows = [{"prompt": f"Pair {n}.", "tests": ["assert pair(1) == (1, 1)"]} for n in range(80)]
    with pytest.raises(ConfigurationError, match="column"):
        check(build(recipe_named(recipe), {"env": saved(tmp_path, *rows)}))
