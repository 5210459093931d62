"""The worked examples of the documentation work as they stand there, in new files only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("add-a-mechanism", "add-a-strategy", "add-an-environment")
_MADE = """
from strop.recipes import build, recipe_named
from strop.recipes.environments import parse_envs
print(build(recipe_named("rare_tokens"), {"power": 1.0}).losses)
print(build(recipe_named("second_halves"), {"share": 0.3}).strategy)
print(parse_envs("lexicon:3", 0))
"""


def files_of(page: str, folder: Path) -> list[str]:
    """The files that a page names, put where it says."""
    text = (ROOT / "docs" / page).read_text()
    names = re.findall(r"^`((?:strop|tests)/\S+\.py)`", text, re.MULTILINE)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(names) == len(blocks) >= 2
    for name, block in zip(names, blocks, strict=True):
        assert not (folder / name).exists(), f"{name} would edit an existing file"
        (folder / name).write_text(block)
    return names


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of the examples, put beside links to everything that exists: an interpreter takes seconds to begin.

    No example knows of another: each stands in files that only its own page names.
    """
    folder = tmp_path_factory.mktemp("checkout")
    for each in ("strop", "tests"):
        _link(ROOT / each, folder / each)
    named = {page: files_of(f"{page}.md", folder) for page in PAGES}
    for page, names in named.items():
        others = {Path(name).stem for other in PAGES if other != page for name in named[other]}
        assert not [other for name in names for other in others if other in (folder / name).read_text()]
    return {
        "made": run(folder, "-c", _MADE),
        "page": run(folder, "-m", "strop", "papers", "rare-tokens"),
        **_passed(run(folder, "-m", "pytest", "-rA", *(named[page][-1] for page in PAGES)), named),
    }


def _passed(output: str, named: dict[str, list[str]]) -> dict[str, str]:
    """By page which of its tests passed."""
    lines = [line for line in output.splitlines() if line.startswith("PASSED ")]
    return {page: "\n".join(line for line in lines if names[-1] in line) or output for page, names in named.items()}


def run(folder: Path, *words: str) -> str:
    found = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True)
    return found.stdout + found.stderr


def test_the_worked_example_works(told: dict[str, str]) -> None:
    assert "RareTokens(power=1.0" in told["made"], told["made"]
    assert "RareTokens" in told["page"] and "0 is REINFORCE" in told["page"], told["page"]
    assert told["add-a-mechanism"].count("PASSED ") == 1, told["add-a-mechanism"]


def test_a_strategy_is_added_as_the_page_says(told: dict[str, str]) -> None:
    assert "SecondHalves(share=0.3)" in told["made"], told["made"]
    assert told["add-a-strategy"].count("PASSED ") == 1, told["add-a-strategy"]


def test_a_env_is_added_as_the_page_says(told: dict[str, str]) -> None:
    assert "Lexicon(level=3" in told["made"], told["made"]
    assert told["add-an-environment"].count("PASSED ") == 1, told["add-an-environment"]


def _link(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.name == "__pycache__":
            continue
        if path.is_dir() and any(path.rglob("*.py")):
            _link(path, target / path.name)
        else:
            (target / path.name).symlink_to(path)
