"""The worked examples of the documentation work as they stand there, in new files only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def files_of(page: str, folder: Path) -> list[str]:
    """The files that a page names, put where it says beside links to everything that exists."""
    text = (ROOT / "docs" / page).read_text()
    names = re.findall(r"^`((?:strop|tests)/\S+\.py)`", text, re.MULTILINE)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(names) == len(blocks) >= 2
    for each in ("strop", "tests"):
        _link(ROOT / each, folder / each)
    for name, block in zip(names, blocks, strict=True):
        assert not (folder / name).exists(), f"{name} would edit an existing file"
        (folder / name).write_text(block)
    return names


def run(folder: Path, *words: str) -> str:
    found = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True)
    return found.stdout + found.stderr


def test_the_worked_example_works(tmp_path: Path) -> None:
    names = files_of("add-a-mechanism.md", tmp_path)
    check = "from strop.recipes import build, recipe_named as r; print(build(r('rare_tokens'), {'power': 1.0}).losses)"
    assert "RareTokens(power=1.0" in (told := run(tmp_path, "-c", check)), told
    page = run(tmp_path, "-m", "strop", "papers", "rare-tokens")
    assert "RareTokens" in page and "0 is REINFORCE" in page, page
    assert "1 passed" in (told := run(tmp_path, "-m", "pytest", "-q", names[-1])), told


def test_a_strategy_is_added_as_the_page_says(tmp_path: Path) -> None:
    names = files_of("add-a-strategy.md", tmp_path)
    check = (
        "from strop.recipes import build, recipe_named as r; print(build(r('second_halves'), {'share': 0.3}).strategy)"
    )
    assert "SecondHalves(share=0.3)" in (told := run(tmp_path, "-c", check)), told
    assert "1 passed" in (told := run(tmp_path, "-m", "pytest", "-q", names[-1])), told


def test_a_world_is_added_as_the_page_says(tmp_path: Path) -> None:
    names = files_of("add-a-world.md", tmp_path)
    check = "from strop.recipes.worlds import parse_worlds; print(parse_worlds('lexicon:3', 0))"
    assert "Lexicon(level=3" in (told := run(tmp_path, "-c", check)), told
    assert "1 passed" in (told := run(tmp_path, "-m", "pytest", "-q", names[-1])), told


def _link(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.name == "__pycache__":
            continue
        if path.is_dir() and any(path.rglob("*.py")):
            _link(path, target / path.name)
        else:
            (target / path.name).symlink_to(path)
