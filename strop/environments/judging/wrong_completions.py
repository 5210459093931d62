"""Worse completions: those of a table's row as they stand, else made by rules, ordered by how far off they are."""

from __future__ import annotations

import random
from collections.abc import Iterator

from strop.environments.bundled.arithmetic import terms_of
from strop.environments.bundled.countdown import Expression, random_expression
from strop.environments.data.rows import ranked_by
from strop.environments.format.think_tags import CLOSE, sum_steps, think
from strop.environments.single_turn import Solves
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.types import Task

_SLIPS = (1, 2, 3, 5, 10, 20)  # by how much a partial sum may be off
_TRIES = 200


def wrong_completions(env: Environment, task: Task, stream: random.Random, count: int = 1) -> list[str]:
    """Different wrong completions, each further from the right answer than the one before it."""
    found = dict[float, str]()
    for distance, completion in _wrong(env, task, stream):
        found.setdefault(distance, completion)
        if len(found) == count:
            return [found[each] for each in sorted(found)]
    raise ConfigurationError(
        f"a task of {env.name}:{env.level} has {len(found)} wrong completions that differ in how far off they are, "
        f"need {count}; of a table, a column `ranking` has as many and one more, the best first"
    )


def _wrong(env: Environment, task: Task, stream: random.Random) -> Iterator[tuple[float, str]]:
    if worse := ranked_by(task)[1:]:
        yield from ((float(place), text) for place, text in enumerate(worse, 1))
        return
    match task.source:
        case "arithmetic":
            yield from ((size, _slipped(task, stream, size)) for size in stream.sample(_SLIPS, len(_SLIPS)))
        case "countdown":
            yield from _missed(task, stream)
        case _:
            yield 1.0, _with_answer_of(env, task, stream)


def _slipped(task: Task, stream: random.Random, size: int) -> str:
    """One step of the sum is off by `size`, and the error is carried on."""
    terms = terms_of(task)
    left = stream.randrange(len(terms) - 1)  # steps before the wrong one

    def slip(right: int) -> int:
        nonlocal left
        left -= 1
        if left != -1:
            return right
        return right - size if right > size and stream.random() < 0.5 else right + size

    steps, total = sum_steps(terms, slip)
    return think(steps, str(total))


def _missed(task: Task, stream: random.Random) -> Iterator[tuple[float, str]]:
    """Other expressions of the same numbers, by how far from the target they end."""
    right = Expression(task.answer)
    for _ in range(_TRIES):
        tried = Expression(random_expression(right.numbers, stream))
        if tried.value != right.value:
            yield abs(float(tried.value - right.value)), think(tried.steps, tried.text)


def _with_answer_of(env: Environment, task: Task, stream: random.Random) -> str:
    """The right working, and the answer of another task behind it."""
    if not isinstance(env, Solves):
        raise ConfigurationError(f"{env.name} knows no right completions, so none can be made wrong")
    for _ in range(_TRIES):
        other = env.task(stream.randrange(env.num_tasks() or 1 << 20))
        working, closed, _ = env.solution(task).rpartition(CLOSE)
        completion = f"{working}{closed}{other.answer}"
        if other.answer != task.answer and not env.check(task, completion):
            return completion
    raise ConfigurationError(
        f"{env.name}:{env.level} has no other answer in {_TRIES} tasks to make wrong completions of; rows of a table "
        "bring theirs in the columns `chosen` and `rejected`, or `ranking`"
    )
