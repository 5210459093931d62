"""Code blocks of the documentation: found by their fences, told apart by language, and executed in the order of a page.

A block under a line that names a file (`grade.py`:) is written there. Other Python is executed. In `console` blocks
every line after `$ ` is a command; the lines below it must be in what it says, `...` being anything.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import strop.cli

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"(?:^`([\w./-]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MAY_FAIL = ("attack", "replay", "doctor")  # by their exit code these say what they found


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    language: str
    text: str
    file: str = ""  # that it is written to


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    return [Block(language, text, file) for file, language, text in _BLOCK.findall(page.read_text())]


@dataclass(frozen=True)
class Command:
    """A line after `$ `, and what is shown below it."""

    words: list[str]
    shown: list[str]

    @property
    def is_refused(self) -> bool:
        return any(line.startswith("error:") for line in self.shown)


def commands_of(block: Block) -> list[Command]:
    found = list[Command]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(shlex.split(line[2:]), []))
        elif line.strip():
            found[-1].shown.append(line.strip())
    return found


def execute(block: Block, names: dict[str, Any], said: Callable[[], str]) -> None:
    """Do what a reader would do; `said` is what was printed since it was last asked."""
    if block.file:
        Path(block.file).write_text(block.text)
    elif block.language == "python":
        exec(compile(block.text, "page", "exec"), names)
    elif block.language == "console":
        for command in commands_of(block):
            _run(command, said)
    else:
        assert block.language == "text", f"a block of {block.language!r} cannot be executed"


def _run(command: Command, said: Callable[[], str]) -> None:
    """A command of strop in this process: importing torch again for each would take most of the time."""
    assert command.words[0] == "strop", f"only strop's own commands are executed, got {command.words}"
    said()
    before, sys.argv = sys.argv, command.words
    try:
        strop.cli.main()
        code: Any = 0
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = before
    told = said()
    if not any(word in command.words for word in _MAY_FAIL):
        assert (code != 0) == command.is_refused, f"{shlex.join(command.words)} ended with {code}:\n{told}"
    lines = [line.strip() for line in told.splitlines()]
    for shown in command.shown:
        pattern = re.escape(shown).replace(re.escape("..."), ".*")
        assert any(re.fullmatch(pattern, line) for line in lines), f"{shown!r} is not in what was said:\n{told}"
