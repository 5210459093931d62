"""Confirmation before a recipe.py that this user did not write is executed: a prompt on a terminal, else --trust."""

from __future__ import annotations

import sys

import typer

from strop.storage.run_folder import RunFolder
from strop.storage.trust import is_own, refusal


def is_trusted(folder: RunFolder, trust: bool) -> bool:
    """Whether the recipe of a run may be executed although this user did not write it; without an answer: no."""
    if trust or not folder.recipe.is_file() or is_own(folder.recipe):
        return trust
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(refusal(folder.recipe), file=sys.stderr)
    return typer.confirm("Execute it?", default=False, err=True)
