"""Nine scorers of reasoning-gym evaluate the answer as Python: right ones are scored right, and nothing ever runs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sympy

from strop.environments.external.reasoning_gym import ReasoningGym
from strop.environments.external.safe_answers import EVALUATED, is_plain
from strop.types import Task


def right(dataset: str, task: Task) -> str:
    """The package leaves some of its integrals undone: what a right completion would say is worked out here."""
    done = sympy.parse_expr(task.answer).doit() if "Integral" in task.answer else task.answer
    return str(done)


@pytest.mark.parametrize("dataset", sorted(EVALUATED))
def test_right_answers_of_real_tasks_are_scored_right(dataset: str) -> None:
    for level in (0, 2):
        env = ReasoningGym(dataset, level=level, chunk=64)
        for task in (env.task(0), env.task(0, heldout=True)):
            assert env.check(task, f"so <answer> {right(dataset, task)}\n</answer>") == 1.0, (level, task.answer)


@pytest.mark.parametrize(
    ("dataset", "listed", "score"),
    [
        ("spiral_matrix", lambda answer: str([int(word) for word in answer.split()]), 0.1),
        ("binary_matrix", lambda answer: str([[int(n) for n in row.split()] for row in answer.splitlines()]), 0.1),
        ("n_queens", lambda answer: str([row.split() for row in answer.splitlines()]), 0.5),
        ("string_insertion", lambda answer: str(list(answer)), 0.1),
    ],
)
def test_lists_are_scored_as_the_package_scores_them(dataset: str, listed: object, score: float) -> None:
    env = ReasoningGym(dataset, chunk=64)
    task = env.task(3)
    assert callable(listed) and env.check(task, listed(task.answer)) == score


@pytest.mark.parametrize("dataset", sorted(EVALUATED))
def test_an_answer_that_is_code_never_runs(dataset: str, tmp_path: Path) -> None:
    env, mark = ReasoningGym(dataset, chunk=64), tmp_path / "ran"
    task = env.task(0)
    touch = f"open({str(mark)!r}, 'w').close()"
    for code in (touch, f"[{touch}]", f"[[{touch} for x in (1,)]]", f"exec({touch!r})", f"(lambda: {touch})()"):
        assert env.check(task, f"<answer>{code}</answer>") <= 0.01
        assert env.check(task, code) <= 0.01
    assert not mark.exists()


@pytest.mark.parametrize(
    "answer",
    [
        *("().__class__", "x.func", "x.__class__", "'A'.join", "[].append(1)", "print(1)", "f'{x}'", "S('x')", "x!"),
        *("x if x else x", "lambda: x", "x; x", "(x := 1)", "x = 1", "x\\\n", "x#", "{x}", "0x1F", "1_0", "1j", "1e5"),
        *("\N{FULLWIDTH LATIN SMALL LETTER X}", "\N{ARABIC-INDIC DIGIT ONE}", "exec", "C.x", "x@x", "x and x", "x, x"),
    ],
)
def test_no_grammar_knows_names_attributes_calls_or_statements(answer: str) -> None:
    for dataset in EVALUATED:
        assert not is_plain(answer, {"source_dataset": dataset, "variable": "x"}), dataset


def test_numbers_cannot_be_made_to_grow_without_bound() -> None:
    for answer in ("9**9**9**9", "9//1", "9 ** 9"):
        assert not is_plain(answer, {"source_dataset": "countdown"})
    assert not is_plain("1+" * 60_000 + "1", {"source_dataset": "puzzle24"})


def test_a_dataset_made_of_others_is_no_way_around(tmp_path: Path) -> None:
    from reasoning_gym.composite import DatasetSpec

    mark = tmp_path / "ran"
    env = ReasoningGym("composite", config={"datasets": [DatasetSpec("n_queens", 1.0, {})]}, chunk=64)
    task = env.task(0)
    assert env.check(task, f"[open({str(mark)!r}, 'w')]") == 0.0 and not mark.exists()
    assert env.check(task, task.answer) == 1.0


def test_hostile_tags_cost_no_time() -> None:
    env = ReasoningGym("chain_sum")
    task = env.task(0)
    started = time.monotonic()
    assert env.check(task, "<answer>" * 16_000) < 0.1
    assert time.monotonic() - started < 1.0
    assert env.check(task, f"<answer>1</answer> no <answer>{task.answer}</answer>") == 1.0


WATCH = """
import sys
import reasoning_gym
from reasoning_gym.factory import DATASETS
compiled = []
sys.addaudithook(lambda event, args: compiled.append(args[0]) if event == "compile" else None)
WORDS = ("[canary]", "canary", "canary+1", "canary=1", '{"canary": [1]}', "['canary']", "1,canary", "(canary)")
for name in sorted(set(DATASETS) - {"composite"}):
    data = reasoning_gym.create_dataset(name, seed=1, size=1)
    entry = data[0]
    for words in WORDS:
        try:
            data.score_answer(words, entry)
        except Exception:
            pass
    if any("canary" in (text.decode() if isinstance(text, bytes) else str(text)) for text in compiled):
        print(f'evaluates:{name}')
    compiled.clear()
"""


def test_no_other_scorer_of_the_installed_package_compiles_what_it_is_given() -> None:
    """Asked of the interpreter itself, for every dataset; an update of the package that adds one is found here."""
    found = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, check=True)
    assert set(re.findall(r"evaluates:(\w+)", found.stdout)) == EVALUATED
