"""Help, recipes and papers on the command line: short, quick, without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def strop(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", "strop", *words], cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [("--help",), ("train", "--help"), ("recipes",), ("train", "gropo"), ("train", "grpo", "stepps=3"), ("--version",)],
)
def test_it_answers_without_torch_in_a_second_of_a_core(words: tuple[str, ...]) -> None:
    program = "import runpy, sys; sys.argv[0] = 'strop'\ntry: runpy.run_module('strop', run_name='__main__')\n"
    program += "finally: assert not {'torch', 'transformers', 'numpy'} & set(sys.modules), 'heavy'"
    before = os.times()
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True)
    after = os.times()
    assert "heavy" not in done.stderr, done.stderr
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1.0
    if words[-1] == "--help":
        assert len(done.stdout.splitlines()) <= 60


def test_train_help_shows_few_recipes_and_classes_with_their_numbers() -> None:
    _, out, _ = strop("train", "--help")
    assert "pocket (default)" in out and "--place" in out and "--engines" in out
    assert "objective" in out and "mc_grpo" not in out


def test_mistyped_recipes_and_fields_are_told_with_a_hint() -> None:
    code, _, err = strop("train", "gropo")
    assert code == 2 and "did you mean grpo" in err
    code, _, err = strop("train", "grpo", "stepps=3")
    assert code == 2 and "did you mean steps" in err


def test_recipes_by_class_and_by_word() -> None:
    assert "dra_grpo" in strop("recipes", "reward")[1] and "nft" not in strop("recipes", "reward")[1]
    out = strop("recipes", "median")[1]
    assert "mc_grpo" in out and "grpo " in out and "ppo" not in out.replace("grpo", "")
    code, _, err = strop("recipes", "no such thing")
    assert code == 2 and "no recipe says" in err


def test_papers_one_line_each_and_one_on_a_page() -> None:
    _, out, _ = strop("papers")
    lines = [line for line in out.splitlines() if line.startswith("nft ")]
    assert len(lines) == 1 and "Supervised learning" in lines[0]
    _, page, _ = strop("papers", "nft")
    assert all(word in page for word in ("2505.18116", "Claim.", "strop train nft", "negative_weight", "Effect"))
    assert "dr-grpo" in strop("papers", "dr_grpo")[1]
    code, _, err = strop("papers", "nftt")
    assert code == 2 and "did you mean nft" in err


def test_papers_as_json_keep_their_fields() -> None:
    found = json.loads(strop("papers", "--json")[1])
    assert {"key", "mechanisms", "recipes", "tests", "effect"} <= set(found[0])
    areal = next(each for each in found if each["key"] == "areal")
    assert areal["recipes"] == ["strop.recipes.system.areal"]


def test_a_recipe_is_imported_alone() -> None:
    program = "import sys; from strop.recipes import recipe_named; recipe_named('rollart')\n"
    program += "print([m for m in sys.modules if m.startswith('strop.recipes.') and m.count('.') == 3])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "['strop.recipes.system.rollart']", done.stderr
