"""What is skipped is said by reason, with workers and without; isolation that is not tested fails CI on Linux."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = """
import pytest

@pytest.mark.parametrize("number", range(3))
@pytest.mark.skipif(True, reason="{isolation}no such isolation")
def test_wall(number): pass

@pytest.mark.skipif(True, reason="no compiler")
def test_other(): pass

def test_well(): pass
"""
FILE = 'import pytest\npytest.importorskip("nothing_there")\n'


def tried(folder: Path, isolation: str, ci: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(TESTS.replace("{isolation}", isolation))
    (folder / "test_whole.py").write_text(FILE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skipped", "-p", "no:cacheprovider", *words, "."]
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        command, cwd=folder, env=known | {"CI": ci, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("isolation", "ci", "code"),
    [("isolation: ", "true", 1), ("isolation: ", "", 0), ("", "true", 0)],
    ids=["fails", "at home", "else"],
)
def test_a_skipped_wall_fails_ci_alone_and_all_is_said(
    tmp_path: Path, words: tuple[str, ...], isolation: str, ci: str, code: int
) -> None:
    done = tried(tmp_path, isolation, ci, *words)
    assert done.returncode == (code if sys.platform == "linux" else 0), done.stdout + done.stderr
    *_, last = done.stdout.strip().splitlines()
    assert re.match(r"=*\s*1 passed, 5 skipped", last), "pytest's own line stays the last one"
    assert re.search(r"5 skipped: tests, or files", done.stdout)
    assert f"\n   3 {isolation}no such isolation\n" in done.stdout and "\n   1 no compiler\n" in done.stdout
    assert re.search(r"\n   1 could not import 'nothing_there'", done.stdout)
    assert ("3 tests of isolation were skipped" in done.stdout) == bool(done.returncode)


def test_what_failed_stays_failed(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text("def test_wrong(): assert False")
    assert tried(tmp_path, "", "true").returncode == 1


def test_reasons_of_skipped_sandbox_are_known_as_such() -> None:
    """Every test that asks for isolation before it runs says so in the word that CI looks for."""
    asks = re.compile(r"skip(?:if)?\([^\n]*(?:problem\(\)|best_isolation\(\)|isolation)[^\n]*")
    found = [
        (path.name, line)
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__)
        for line in asks.findall(path.read_text())
    ]
    assert len(found) >= 5 and not [each for each in found if "isolation: " not in each[1]]
