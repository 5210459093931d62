"""Help, recipes and papers on the command line: short, quick, without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from strop import cli

ROOT = Path(__file__).parent.parent.parent


Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def strop(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """The command in this process: exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["strop", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0), *capsys.readouterr()

    return run


# by words of the command: its exit code, and what it says
ANSWERS: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {
    ("--help",): (0, ("train", "papers")),
    ("train", "--help"): (0, ("pocket (default)", "--place", "--engines", "objective")),
    ("recipes",): (0, ("mc_grpo",)),
    ("train", "gropo"): (2, ("did you mean grpo",)),
    ("train", "grpo", "stepps=3"): (2, ("did you mean steps",)),
    ("--version",): (0, (version("strop"),)),
}


@pytest.mark.parametrize("words", ANSWERS)
def test_it_answers_without_torch_in_a_second_of_a_core(words: tuple[str, ...]) -> None:
    program = "import runpy, sys; sys.argv[0] = 'strop'\ntry: runpy.run_module('strop', run_name='__main__')\n"
    program += "finally: assert not {'torch', 'transformers', 'numpy'} & set(sys.modules), 'heavy'"
    before = os.times()
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True)
    after = os.times()
    assert "heavy" not in done.stderr, done.stderr
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1.0
    code, said = ANSWERS[words]
    assert done.returncode == code and all(each in (done.stderr if code else done.stdout) for each in said)
    if words[-1] == "--help":
        assert len(done.stdout.splitlines()) <= 60 and "mc_grpo" not in done.stdout


def test_recipes_by_class_and_by_word(strop: Said) -> None:
    out = strop("recipes", "reward")[1]
    assert "dra_grpo" in out and "nft" not in out
    out = strop("recipes", "median")[1]
    assert "mc_grpo" in out and "grpo " in out and "ppo" not in out.replace("grpo", "")
    code, _, err = strop("recipes", "no such thing")
    assert code == 2 and "no class or recipe matches" in err


def test_papers_one_line_each_and_one_on_a_page(strop: Said) -> None:
    _, out, _ = strop("papers")
    lines = [line for line in out.splitlines() if line.startswith("nft ")]
    assert len(lines) == 1 and "supervised fine-tuning" in lines[0]
    _, page, _ = strop("papers", "nft")
    assert all(word in page for word in ("2505.18116", "Claim.", "strop train nft", "negative_weight", "Effect"))
    assert "dr-grpo" in strop("papers", "dr_grpo")[1]
    code, _, err = strop("papers", "nftt")
    assert code == 2 and "did you mean nft" in err


def test_papers_as_json_keep_their_fields(strop: Said) -> None:
    found = json.loads(strop("papers", "--json")[1])
    assert {"key", "mechanisms", "recipes", "tests", "effect"} <= set(found[0])
    areal = next(each for each in found if each["key"] == "areal")
    assert areal["recipes"] == ["strop.recipes.system.areal"]
