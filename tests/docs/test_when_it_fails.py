"""The page of errors and warnings: every quoted message exists in strop, and every check before a run is listed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from strop.observe.report.default_charts import CURVES
from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "when-it-fails.md").read_text()
CHECKS = [
    ROOT / "strop" / "launch" / "checks" / f"{name}.py"
    for name in ("preflight", "parts_agree", "task_supply", "warnings", "prompt_lengths", "preflight_all")
]
_HOLE = "\0"  # a value within a message
_PARTS = ("; use a correction with target=", ": a part would count twice", " weighs what comes", f"{_HOLE}(target=")


def sections() -> dict[str, list[str]]:
    """The first cells of the tables, by heading, without backticks."""
    found: dict[str, list[str]] = {}
    for part in PAGE.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        cells = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
        found[title] = [cell.strip("`") for cell in cells if cell.startswith("`")]
    return found


@cache
def messages(path: Path) -> tuple[str, ...]:
    """Texts in a file that are no docstrings, with holes for values."""
    tree = ast.parse(path.read_text())
    skipped = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    skipped |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return tuple(text for node in ast.walk(tree) if id(node) not in skipped and (text := _text(node)))


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else _HOLE for v in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def every_message() -> Iterator[str]:
    """The messages of the packages that print errors and warnings for users."""
    for path in sorted((ROOT / "strop").glob("*.py")):
        yield from messages(path)
    for room in (
        "launch",
        "cli",
        "recipes",
        "observe",
        "generate",
        "storage",
        "models",
        "filter",
        "environments",
        "sandbox",
    ):
        for path in sorted((ROOT / "strop" / room).rglob("*.py")):
            yield from messages(path)


def test_what_is_quoted_exists() -> None:
    known = "\n".join(every_message())
    quoted = [cell for title, cells in sections().items() if not title.startswith("What the doctor") for cell in cells]
    assert len(quoted) > 45
    for cell in quoted:
        pieces = [piece for piece in re.split(r"\.\.\.", cell) if piece.strip(" :;,.()")]
        pattern = r"[^\n]*?".join(re.escape(piece) for piece in pieces)
        assert re.search(pattern, known), f"no message of strop is like {cell!r}"


def test_every_check_before_a_start_is_listed() -> None:
    found = [text for path in CHECKS for text in messages(path) if len(text) > 20 and " " in text]
    missing = [text for text in found if not text.startswith(_PARTS) and not _is_listed(text)]
    assert not missing, missing


def _is_listed(text: str) -> bool:
    return max(text.split(_HOLE), key=len).strip(" :;,()\n") in PAGE


def test_findings_are_those_of_the_doctor() -> None:
    rules = sorted((ROOT / "strop" / "observe" / "health").glob("*.py"))
    named = {name for path in rules for name in re.findall(r'HealthFinding\(\s*"([^"]+)"', path.read_text())}
    listed = set(sections()["What the doctor finds"])
    assert named == listed, (named - listed, listed - named)


def test_curves_of_the_report_are_explained() -> None:
    text = (DOCS / "read-a-report.md").read_text()
    assert not [curve.title for curve in CURVES if f"| {curve.title} |" not in text]
