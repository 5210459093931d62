"""Every code block of the pages for users is executed, as it stands, on the bundled model."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, blocks_of, execute

# how many blocks each page has: one that loses its fence is noticed
EXECUTED = {
    "asynchronous-runs": 3,
    "bring-your-data": 15,
    "certificate": 1,
    "coming-from-openrlhf": 2,
    "coming-from-trl": 8,
    "coming-from-unsloth": 1,
    "coming-from-verl": 4,
    "fill-masks": 1,
    "grpo-in-one-file": 1,
    "health": 1,
    "models": 1,
    "one-gpu-and-adapters": 3,
    "read-a-report": 5,
    "train-your-model": 10,
    "when-it-fails": 1,
    "write-a-reward": 11,
    "write-an-environment": 4,
}
IN_NEW_FILES = {"add-a-mechanism", "add-a-strategy", "add-an-environment"}  # executed by tests/test_docs.py
OF_OTHERS = {
    "programs",
    "simulate",
    "effects",
    "bundled-models",
}  # other people's tools, servers that stay, runs of minutes
WITHOUT_CODE = {
    "choose",
    "engines",
    "index",
    "promises",
    "map",
    "named-parts",
    "papers",
    "reasoning-gym",
    "tokens-by-origin",
    "use",
    "watch",
}


def test_every_page_is_executed_or_it_is_said_why_not() -> None:
    known = {*EXECUTED, *IN_NEW_FILES, *OF_OTHERS, *WITHOUT_CODE}
    assert {path.stem for path in DOCS.glob("*.md")} <= known
    assert {name: len(blocks_of(DOCS / f"{name}.md")) for name in EXECUTED} == EXECUTED
    plain = [DOCS / f"{name}.md" for name in WITHOUT_CODE if (DOCS / f"{name}.md").exists()]
    # a picture made of letters has no language
    assert not [page.stem for page in plain if any(block.language for block in blocks_of(page))]


def test_links_between_pages_lead_somewhere() -> None:
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\((?!http)([\w./-]+\.\w+)", path.read_text()):
            assert (DOCS / target).exists(), f"{path.name} links to {target}"


def test_the_readme_is_short_its_links_lead_somewhere_and_its_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = DOCS.parent / "README.md"
    assert len(page.read_text().splitlines()) <= 90
    for target in re.findall(r"\]\((?!http)([\w./-]+)", page.read_text()):
        assert (DOCS.parent / target).exists(), target
    (block,) = (each for each in blocks_of(page) if each.language == "python")
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text.replace("steps=50", "steps=1, heldout_tasks=4"), "README.md", "exec"), {})
    assert re.search(r"held-out accuracy \d+% -> \d+%\n\S+grpo-seed0", capsys.readouterr().out)


@pytest.mark.parametrize("name", EXECUTED)
def test_a_page_can_be_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "docs").symlink_to(DOCS)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(DOCS / f"{name}.md"):
        execute(block, names, lambda: "\n".join(capfd.readouterr()))


@pytest.mark.parametrize("name", sorted(OF_OTHERS))
def test_programs_of_other_pages_are_python(name: str) -> None:
    for block in blocks_of(DOCS / f"{name}.md"):
        if block.language == "python":
            compile(block.text, name, "exec")
