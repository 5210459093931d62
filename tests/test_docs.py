"""The worked example of docs/add-a-mechanism.md works as it stands there, in new files only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_worked_example_works(tmp_path: Path) -> None:
    """Its three files, put where it says beside links to everything that exists."""
    text = (ROOT / "docs" / "add-a-mechanism.md").read_text()
    names = re.findall(r"^`((?:strop|tests)/\S+\.py)`", text, re.MULTILINE)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(names) == len(blocks) == 3
    for folder in ("strop", "tests"):
        _link(ROOT / folder, tmp_path / folder)
    for name, block in zip(names, blocks, strict=True):
        assert not (tmp_path / name).exists(), f"{name} would edit an existing file"
        (tmp_path / name).write_text(block)
    check = "from strop.recipes import build, recipe_named as r; print(build(r('rare_tokens'), {'power': 1.0}).losses)"
    found = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True)
    assert "RareTokens(power=1.0" in found.stdout, found.stderr
    page = subprocess.run(
        [sys.executable, "-m", "strop", "papers", "rare-tokens"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "RareTokens" in page.stdout and "0 is REINFORCE" in page.stdout, page.stderr
    test = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", names[2]], cwd=tmp_path, capture_output=True, text=True
    )
    assert "1 passed" in test.stdout, test.stdout + test.stderr


def _link(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.name == "__pycache__":
            continue
        if path.is_dir() and any(path.rglob("*.py")):
            _link(path, target / path.name)
        else:
            (target / path.name).symlink_to(path)
