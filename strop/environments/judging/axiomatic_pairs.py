"""Preference pairs built from axioms instead of human labels (2312.02206).

The paper's axioms, adapted to environments whose completions show a chain of thought: `useful` (the environment's
check; votes in the paper), `relevant` (an answer to this question over one to another question), `grounded` (with chain
of thought over the bare answer), `evidence` (its own chain of thought over another question's) and `merged` (the whole
chain of thought over a part of it).

Papers: axiomatic-preference
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Protocol

from strop.environments.format.demonstrations import demonstration
from strop.environments.format.think_tags import CLOSE, OPEN, think
from strop.environments.judging.wrong_completions import wrong_completions
from strop.environments.single_turn import Solves
from strop.roles import Environment
from strop.types import Task

_ALL = 1 << 16  # steps: more than any worked solution has


class Solved(Environment, Solves, Protocol):
    """Environment that provides right completions."""


def useful(env: Solved, task: Task, stream: random.Random) -> str:
    """A wrong completion."""
    return wrong_completions(env, task, stream)[0]


def relevant(env: Solved, task: Task, stream: random.Random) -> str:
    """The right completion to another question."""
    return env.solution(_another(env, stream))


def grounded(env: Solved, task: Task, stream: random.Random) -> str:
    """The right answer without its working."""
    text = env.solution(task)
    return text.rpartition(CLOSE)[2] if CLOSE in text else demonstration(text).answer or text


def evidence(env: Solved, task: Task, stream: random.Random) -> str:
    """The right answer behind the working of another question."""
    other = env.solution(_another(env, stream))
    working, closed, _ = other.rpartition(CLOSE)
    shown = f"{working}{closed}" if closed else f"{demonstration(other).hint(_ALL)}\n"
    return f"{shown}{grounded(env, task, stream)}"


def merged(env: Solved, task: Task, stream: random.Random) -> str:
    """The right answer behind the first part of its working."""
    working, closed, answer = env.solution(task).rpartition(CLOSE)
    if not closed:
        shown = demonstration(answer)
        return f"{shown.hint(stream.randrange(1, max(len(shown.steps), 2)))}\n{shown.answer}"
    steps = working.removeprefix(OPEN).split()
    return think(steps[: stream.randrange(1, len(steps))], answer) if len(steps) > 1 else f"{working}{CLOSE}{answer}"


def _another(env: Solved, stream: random.Random) -> Task:
    return env.task(stream.randrange(env.num_tasks() or 1 << 20))


# what is worse than the environment's own solution, by the axiom's name
AXIOMS: Mapping[str, Callable[[Solved, Task, random.Random], str]] = {
    "useful": useful,
    "relevant": relevant,
    "grounded": grounded,
    "evidence": evidence,
    "merged": merged,
}
