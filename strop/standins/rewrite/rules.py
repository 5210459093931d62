"""Rewriting rules of one environment, by the name of the request (`control/task_generators/support/prompts.py`)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeAlias

Problem: TypeAlias = tuple[str, str]  # what is asked, and the answer


class Rules(Protocol):
    """Raises ValueError for what the rules do not cover, or cannot do without revealing the answer."""

    def knows(self, task: str) -> bool: ...  # whether this is a problem of the environment
    def changed(self, wanted: str, task: str, answer: str, stream: random.Random) -> Problem: ...
    def mended(self, completion: str, task: str, answer: str, stream: random.Random) -> Problem:
        return self.changed("similar", task, answer, stream)  # a problem that trains what a completion got wrong

    def solved(self, task: str) -> str:
        raise ValueError(f"only its environment knows the answer to {task!r}")

    def is_same(self, task: str, other: str) -> bool:
        return self.knows(other) and self.solved(task) == self.solved(other)

    def concepts(self, task: str, answer: str) -> list[str]:
        raise ValueError(f"there are no concepts in {task!r}")

    def about(self, ideas: Sequence[str], task: str, stream: random.Random) -> Problem:
        raise ValueError(f"there are no concepts in {task!r}")  # a problem that needs these concepts


def refuse(wanted: str, task: str) -> ValueError:
    return ValueError(f"nothing {wanted} follows from {task!r} by a rule")
