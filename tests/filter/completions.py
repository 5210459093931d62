"""Groups of rollouts from plain completions, a token for each letter, for tests of rewards that read them."""

from __future__ import annotations

from dataclasses import replace

from strop.types import Group, Message, Outcome, Rollout, Task
from tests.building import turn


def said(task: Task, *completions: str) -> Group:
    """One rollout for each completion."""
    turns = [replace(turn(len(completion)), message=Message("assistant", completion)) for completion in completions]
    rollouts = [Rollout(str(number), task, (each,), Outcome.FINISHED) for number, each in enumerate(turns)]
    return Group(0, task, rollouts)
