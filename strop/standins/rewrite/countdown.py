"""Rewriting of `make 23 from 2 3 7`: a part is solved, a number is added, or numbers are resampled."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import combinations

from strop.environments.bundled.countdown import Exact, Expression, apply, random_expression
from strop.standins.rewrite.rules import Problem, Rules, refuse

_PROBLEM = re.compile(r"make (\d+) from ((?:\d+ )+\d+)")
_LARGEST, _MOST = 12, 5  # of the numbers that the environment draws, and how many of them
_TRIES = 200


class Targets(Rules):
    """Rules for numbers and targets of the environment `countdown`."""

    def knows(self, task: str) -> bool:
        return _PROBLEM.fullmatch(task) is not None

    def changed(self, wanted: str, task: str, answer: str, stream: random.Random) -> Problem:
        target, numbers = _read(task)
        if wanted == "simpler" and len(numbers) > 2:
            return f"{task} hint: {Expression(answer).steps[0]}", answer  # as `environments/format/hints.py` words it
        if wanted == "reworded":
            return f"make {target} from {' '.join(map(str, reversed(numbers)))}", answer
        if wanted == "similar":
            return _problem(_drawn(len(numbers), stream))
        if wanted == "easier" and len(numbers) > 2:
            return _problem(_once_solved(answer))
        if wanted == "harder" and len(numbers) < _MOST:
            return _problem(f"{answer}+{stream.randint(1, _LARGEST)}")
        raise refuse(wanted, task)

    def solved(self, task: str) -> str:
        target, numbers = _read(task)
        if found := _reached([(number, str(number)) for number in numbers], target):
            return found
        raise ValueError(f"nothing reaches it: {task!r}")

    def is_same(self, task: str, other: str) -> bool:
        (target, numbers), (there, others) = _read(task), _read(other)
        return target == there and sorted(numbers) == sorted(others)

    def concepts(self, task: str, answer: str) -> list[str]:
        return sorted(set(re.findall(r"[-+*/]", answer)))

    def about(self, ideas: Sequence[str], task: str, stream: random.Random) -> Problem:
        """The expression that uses most of these operators, of a few that are drawn."""
        made = [_drawn(len(_read(task)[1]), stream) for _ in range(_TRIES)]
        return _problem(max(made, key=lambda text: sum(idea in text for idea in ideas)))


def _read(task: str) -> tuple[int, list[int]]:
    found = _PROBLEM.fullmatch(task)
    if not found:
        raise ValueError(f"not a target: {task!r}")
    return int(found.group(1)), [int(number) for number in found.group(2).split()]


def _problem(answer: str) -> Problem:
    read = Expression(answer)
    return f"make {read.value} from {' '.join(map(str, sorted(read.numbers)))}", answer


def _drawn(count: int, stream: random.Random) -> str:
    return random_expression([stream.randint(1, _LARGEST) for _ in range(count)], stream)


def _once_solved(answer: str) -> str:
    """The same expression with the result of its first step in that step's place."""
    step, _, result = Expression(answer).steps[0].rpartition("=")
    pattern = rf"\({re.escape(step)}\)|(?<!\d){re.escape(step)}(?!\d)"
    shorter = re.sub(pattern, result, answer, count=1)
    if Expression(shorter).value != Expression(answer).value:
        raise ValueError(f"{shorter} is not {answer}")
    return shorter


def _reached(parts: list[tuple[Exact, str]], target: int) -> str:
    """An expression of all these values that comes to the target; empty where there is none."""
    if len(parts) == 1:
        return parts[0][1] if parts[0][0] == target else ""
    for one, other in combinations(range(len(parts)), 2):
        rest = [part for place, part in enumerate(parts) if place not in (one, other)]
        for left, right in ((parts[one], parts[other]), (parts[other], parts[one])):
            for operator in "+-*/":
                if operator == "/" and right[0] == 0:
                    continue
                joined = (apply(operator, left[0], right[0]), f"({left[1]}{operator}{right[1]})")
                if found := _reached([*rest, joined], target):
                    return found
    return ""
