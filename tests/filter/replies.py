"""Groups of attempts from plain replies, a token for each letter, for tests of rewards that read them."""

from __future__ import annotations

from dataclasses import replace

from strop.types import Group, Message, Outcome, Task, Trajectory
from tests.building import turn


def said(task: Task, *replies: str) -> Group:
    """One attempt for each reply."""
    turns = [replace(turn(len(reply)), message=Message("assistant", reply)) for reply in replies]
    attempts = [Trajectory(str(number), task, (each,), Outcome.FINISHED) for number, each in enumerate(turns)]
    return Group(0, task, attempts)
