"""Choice of a recipe: every recommended command passes the checks before a run, and one of each kind runs."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from strop.catalogue.choice import (
    CASES,
    QUESTIONS,
    SHOWN,
    SUMMARY,
    Suggestion,
    command,
    evidence,
    recommended,
    situation_of,
    summary_text,
)
from strop.catalogue.record import records
from strop.cli.commands.train import StartOptions, start_run
from strop.cli.fields.arguments import parse_words, refuse_mistyped
from strop.errors import ConfigurationError
from strop.models.loading.model_names import POCKET

TINY = "steps=1 groups_per_step=4 heldout_tasks=2"
SIGNALS = QUESTIONS["signal"][1]
ENVIRONMENT = '''"""A number to guess."""
from strop.environments.bundled.guess import Guess


def Own() -> Guess:
    return Guess(1)
'''
JUDGE = '''"""A judge that keeps to what it is asked for."""
import re


def answer(prompt):
    if "checklist" in prompt:
        return "100: It is a number"
    if "verdict: N" in prompt:
        return "verdict: 1"
    if "Score each" in prompt:
        return ", ".join("5" for _ in re.findall(r"(?m)^\\d+: ", prompt))
    return "50"
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder with what a user brings, and what takes the place of the commands' capital letters."""
    monkeypatch.chdir(tmp_path)
    with Path("tasks.jsonl").open("w") as tasks, Path("pairs.jsonl").open("w") as pairs:
        for number in range(200):
            one, two = 10 + number % 80, 11 + number % 67
            prompt, answer = f"{one}+{two}=?", str(one + two)
            solution = f"Add {one} and {two}.\nFirst the tens, then the ones.\n#### {answer}"
            tasks.write(json.dumps({"prompt": prompt, "answer": answer, "solution": solution}) + "\n")
            pairs.write(json.dumps({"prompt": prompt, "chosen": answer, "rejected": str(one)}) + "\n")
    Path("rewards.py").write_text("def score(completion, answer):\n    return float(answer in completion)\n")
    Path("environment.py").write_text(ENVIRONMENT)
    Path("judge.py").write_text(JUDGE)
    shutil.copytree(POCKET, "other")
    weights = load_file("other/model.safetensors")
    save_file({name: weight * 1.01 for name, weight in weights.items()}, "other/model.safetensors", {"format": "pt"})
    capitals = {"http://HOST:PORT/v1#MODEL": "judge.py:answer", "teacher=FOLDER": "teacher=other"}
    return capitals | {"max_tokens=8192 context=16384": "max_tokens=128 context=256"}  # what the pocket model bears


def commands() -> dict[str, str]:
    """The command of every recommendation of every shown situation, once, with its recipe."""
    found = {}
    for _, answers in SHOWN:
        asked = replace(situation_of(answers), gpus=0)
        for each in recommended(asked):
            found[command(asked, each)] = each.recipe
    return found


def start(line: str, place: dict[str, str], tiny: str = "", is_dry: bool = True) -> int:
    for word, instead in place.items():
        line = line.replace(word, instead)
    typed = parse_words(shlex.split(f"{line} {tiny}")[2:])
    refuse_mistyped(typed)
    return start_run(typed, StartOptions("", Path("runs"), "", "inline", 1, is_dry), quiet=True)


@pytest.mark.long
def test_every_recommended_command_passes_the_checks_before_a_run(
    place: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = commands()
    assert len(lines) > 25
    for line in lines:
        assert start(line, place, "heldout_tasks=2") == 0, line


@pytest.mark.parametrize("number", [0, 2, 8, 10, 13])
def test_the_first_recommendation_of_a_situation_runs(number: int, place: dict[str, str]) -> None:
    asked = situation_of(SHOWN[number][1])
    assert start(command(asked, recommended(asked)[0]), place, TINY, is_dry=False) == 0


def test_every_situation_has_three_recipes_that_there_are() -> None:
    known = records()
    solved, solutions = QUESTIONS["solved"][1], QUESTIONS["solutions"][1]
    for signal, turns, often, worked in product(SIGNALS, ("one", "several"), solved, solutions):
        for tasks, tokens in product(("10", "1000", "100000"), ("64", "8192")):
            words = {"signal": signal, "turns": turns, "solved": often, "solutions": worked}
            found = recommended(situation_of({**words, "tasks": tasks, "tokens": tokens}))
            assert len({each.recipe for each in found}) == 3 and all(each.recipe in known for each in found)
    shown = {each.recipe for _, answers in SHOWN for each in recommended(situation_of(answers))}
    assert shown == {name for case in CASES for name in case.recipes}, "never recommended in a shown situation"


def test_evidence_has_nulls_too() -> None:
    known = records()
    assert any("does not hold" in line for line in evidence(known["digirl"]))
    assert [line for line in evidence(known["cures"]) if "undecided" in line and "broken" not in line]
    assert evidence(known["grpo"])[-1] == "Here: not measured."


def test_the_summary_of_effects_is_what_the_results_say() -> None:
    assert SUMMARY.read_text() == summary_text(), "run `make pages`"


def test_wrong_answers_are_refused_with_the_right_ones() -> None:
    for answers, said in (
        ({"signal": "answer"}, "did you mean answers"),
        ({"tasks": "many"}, "not a whole number"),
        ({"size": "7"}, "no field 'size'"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            situation_of(answers)


def test_commands_carry_what_was_said() -> None:
    asked = situation_of({"signal": "reward", "tokens": "1024", "gpus": "1", "model": "runs/a", "env": "mine.csv"})
    line = command(asked, Suggestion("grpo", ""))
    assert line.startswith("strop train grpo model=runs/a env=mine.csv reward=rewards.py:score reward_range=0,1")
    assert "max_tokens=1024 context=2048 device=cuda" in line
