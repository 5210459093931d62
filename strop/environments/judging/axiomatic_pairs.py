"""Pairs of replies of which one is better by a stated axiom (2312.02206): nobody has to label them.

The paper's axioms, read for worlds whose replies show their working: `useful` (votes there, the world's check here),
`relevant` (this question's answer over another's), `grounded` (with its working over the bare answer), `evidence` (its
own working over that of another question) and `merged` (the whole working over a part of it).

Papers: axiomatic-preference
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Protocol

from strop.environments.format.think_tags import CLOSE, OPEN, think
from strop.environments.judging.wrong_replies import wrong_replies
from strop.environments.single_turn import Solves
from strop.roles import World
from strop.types import Task


class Solved(World, Solves, Protocol):
    """A world that knows right replies."""


def useful(world: Solved, task: Task, stream: random.Random) -> str:
    """A wrong reply."""
    return wrong_replies(world, task, stream)[0]


def relevant(world: Solved, task: Task, stream: random.Random) -> str:
    """The right reply to another question."""
    return world.solution(_another(world, stream))


def grounded(world: Solved, task: Task, stream: random.Random) -> str:
    """The right answer without its working."""
    return world.solution(task).rpartition(CLOSE)[2]


def evidence(world: Solved, task: Task, stream: random.Random) -> str:
    """The right answer behind the working of another question."""
    working, closed, _ = world.solution(_another(world, stream)).rpartition(CLOSE)
    return f"{working}{closed}{grounded(world, task, stream)}"


def merged(world: Solved, task: Task, stream: random.Random) -> str:
    """The right answer behind the first part of its working."""
    working, _, answer = world.solution(task).rpartition(CLOSE)
    steps = working.removeprefix(OPEN).split()
    return think(steps[: stream.randrange(1, len(steps))], answer) if len(steps) > 1 else f"{working}{CLOSE}{answer}"


def _another(world: Solved, stream: random.Random) -> Task:
    return world.task(stream.randrange(world.num_tasks() or 1 << 20))


# what is worse than the world's own solution, by the axiom's name
AXIOMS: Mapping[str, Callable[[Solved, Task, random.Random], str]] = {
    "useful": useful,
    "relevant": relevant,
    "grounded": grounded,
    "evidence": evidence,
    "merged": merged,
}
