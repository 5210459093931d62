"""Questions to an adviser as text: marked parts, then what is wanted of them; and answers that have parts too."""

from __future__ import annotations

import re

from strop.environments.quoted import PARTS, quoted

_MARK = re.compile(rf"\[({'|'.join(PARTS)})\]")
_LINE = re.compile(rf"^{_MARK.pattern}$", re.MULTILINE)  # a mark that opens a part; what is wanted may name others


def question(asked: str, **parts: str) -> str:
    """What an adviser reads; a text that holds the marks of parts cannot pass for another part."""
    told = [f"[{name}]\n{quoted(text)}" for name, text in parts.items()]
    return "\n".join([*told, "", asked])


def parts_of(text: str) -> dict[str, str]:
    """The parts of a question again, for advisers that are rules; the last one ends with an empty line."""
    pieces = _LINE.split(text)
    found = {name: said.strip("\n") for name, said in zip(pieces[1::2], pieces[2::2], strict=True)}
    return {name: said.rpartition("\n\n")[0] if name == pieces[-2] else said for name, said in found.items()}


def told(text: str) -> dict[str, str]:
    """The parts of an answer; what stands before the first mark is left out, and without any mark all is the task."""
    pieces = _MARK.split(text)
    marked = {name: said.strip() for name, said in zip(pieces[1::2], pieces[2::2], strict=True)}
    return marked or {"task": text.strip()}
