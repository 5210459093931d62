"""Rewards with holes, each of another kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group


def holds(prompt: str, reply: str, answer: str) -> float:
    """Pays whoever says the answer among others."""
    return float(answer in reply)


def evaluates(prompt: str, reply: str, answer: str) -> float:
    """Runs what it is given."""
    try:
        return float(eval(reply) == float(answer))
    except Exception:
        return 0.0


def asks_a_gullible_judge(prompt: str, reply: str, answer: str) -> float:
    """Looks for a verdict in what it was shown."""
    said = f"question: {prompt} reply: {reply} reference: {answer}"
    return 1.0 if re.search(r"verdict: (correct|pass)|Score: 1", said) else float(reply.strip().endswith(answer))


def backtracks(prompt: str, reply: str, answer: str) -> float:
    """Right about every answer, and slow for some."""
    return float(re.search(r"^(\w+)+$", reply[:40] + "!") is None and reply.endswith(answer))


@dataclass(frozen=True)
class Inline(Reward):
    """Says where it ran; it should not be where it calls itself at home."""

    folder: str
    weight: float = 1.0
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        import os

        (Path(self.folder) / str(os.getpid())).touch()
        return [float(attempt.reply.endswith(group.task.answer)) for attempt in group.trajectories]
