"""Rewriting of `47+12+30=?`: terms are added, dropped, moved or resampled, or the first two are summed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from strop.standins.rewrite.rules import Problem, Rules, refuse

_SUM = re.compile(r"(\d+(?:\+\d+)+)=\?")
_STEP = re.compile(r"(\d{1,9})\+(\d{1,9})=(\d{1,9})")


class Sums(Rules):
    """Rules for chain sums of the environment `arithmetic`."""

    def knows(self, task: str) -> bool:
        return _SUM.fullmatch(task) is not None

    def changed(self, wanted: str, task: str, answer: str, stream: random.Random) -> Problem:
        terms = _terms(task)
        match wanted:
            case "simpler" if len(terms) > 2:
                terms = [terms[0] + terms[1], *terms[2:]]
            case "reworded":
                terms = [*terms[1:], terms[0]]
            case "similar":
                terms = [_alike(term, stream) for term in terms]
            case "easier" if len(terms) > 2:
                terms = terms[:-1]
            case "harder":
                terms = [*terms, _alike(terms[-1], stream)]
            case _:
                raise refuse(wanted, task)
        return _problem(terms)

    def mended(self, completion: str, task: str, answer: str, stream: random.Random) -> Problem:
        """The first addition that went wrong, and other numbers behind it."""
        for left, right, result in _STEP.findall(completion):
            if int(left) + int(right) != int(result):
                return _problem([int(left), int(right), *(_alike(term, stream) for term in _terms(task)[2:])])
        return self.changed("similar", task, answer, stream)

    def solved(self, task: str) -> str:
        return _problem(_terms(task))[1]

    def concepts(self, task: str, answer: str) -> list[str]:
        terms = _terms(task)
        return [f"{len(terms)} terms", *sorted({f"{len(str(term))} digits" for term in terms})]

    def about(self, ideas: Sequence[str], task: str, stream: random.Random) -> Problem:
        terms = _terms(task)
        sizes = _numbers(ideas, "digits") or [len(str(term)) for term in terms]
        count = max(_numbers(ideas, "terms"), default=len(terms))
        return _problem([_alike(10 ** (stream.choice(sizes) - 1), stream) for _ in range(count)])


def _terms(task: str) -> list[int]:
    return [int(term) for term in task.removesuffix("=?").split("+")]


def _problem(terms: Sequence[int]) -> Problem:
    return "+".join(map(str, terms)) + "=?", str(sum(terms))


def _alike(term: int, stream: random.Random) -> int:
    """Another number with as many digits."""
    size = len(str(term))
    return stream.randrange(10 ** (size - 1), 10**size)


def _numbers(ideas: Sequence[str], unit: str) -> list[int]:
    found = (re.fullmatch(rf"([1-9]) {unit}", idea) for idea in ideas)
    return [int(each.group(1)) for each in found if each]
