"""Rewards with holes, each of another kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group


def holds(prompt: str, completion: str, answer: str) -> float:
    """Pays whoever says the answer among others."""
    return float(answer in completion)


def evaluates(prompt: str, completion: str, answer: str) -> float:
    """Runs what it is given."""
    try:
        return float(eval(completion) == float(answer))
    except Exception:
        return 0.0


def asks_a_gullible_judge(prompt: str, completion: str, answer: str) -> float:
    """Looks for a verdict in what it was shown."""
    said = f"question: {prompt} completion: {completion} reference: {answer}"
    return 1.0 if re.search(r"verdict: (correct|pass)|Score: 1", said) else float(completion.strip().endswith(answer))


def backtracks(prompt: str, completion: str, answer: str) -> float:
    """Right about every answer, and slow for some."""
    return float(re.search(r"^(\w+)+$", completion[:40] + "!") is None and completion.endswith(answer))


@dataclass(frozen=True)
class Inline(Reward):
    """Says where it ran; it should not be where it calls itself at home."""

    folder: str
    weight: float = 1.0
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        import os

        (Path(self.folder) / str(os.getpid())).touch()
        return [float(rollout.completion.endswith(group.task.answer)) for rollout in group.rollouts]
