"""Rewriting of `rev(rot(abcd))=?`: functions are removed, added or replaced, letters resampled."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

from strop.environments.bundled.compose import FUNCTIONS, parse, steps_of
from strop.standins.rewrite.rules import Problem, Rules, refuse

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PREVIOUS = str.maketrans(_LETTERS, _LETTERS[-1] + _LETTERS[:-1])
_UNDONE: Mapping[str, Callable[[str], str]] = {  # the others lose or add letters
    "rev": FUNCTIONS["rev"],
    "rot": lambda text: text[-1:] + text[:-1],
    "swap": FUNCTIONS["swap"],
    "inc": lambda text: text.translate(_PREVIOUS),
}
_PROBLEM = re.compile(r"(?:[a-z]+\()+[a-z]+\)+=\?")
_STEP = re.compile(r"([a-z]{1,9})\(([a-z]{1,20})\)=([a-z]{0,20})")


class Compositions(Rules):
    """Rules for nested string functions of the environment `compose`."""

    def knows(self, task: str) -> bool:
        return _PROBLEM.fullmatch(task) is not None and set(parse(task)[0]) <= set(FUNCTIONS)

    def changed(self, wanted: str, task: str, answer: str, stream: random.Random) -> Problem:
        names, text = parse(task)  # innermost first
        match wanted:
            case "simpler" if len(names) > 1:
                names, text = names[1:], FUNCTIONS[names[0]](text)
            case "reworded":
                other = stream.choice([name for name in _UNDONE if name != names[0]])
                names, text = [other, *names[1:]], _UNDONE[other](FUNCTIONS[names[0]](text))
            case "similar":
                text = _word(len(text), stream)
            case "easier" if len(names) > 1:
                names = names[:-1]
            case "harder":
                names = [*names, stream.choice(list(_UNDONE))]
            case _:
                raise refuse(wanted, task)
        return _problem(names, text)

    def mended(self, completion: str, task: str, answer: str, stream: random.Random) -> Problem:
        """The first function that was taken wrongly is the innermost one, on another word."""
        names, text = parse(task)
        for name, before, after in _STEP.findall(completion):
            if name in names and FUNCTIONS[name](before) != after:
                rest = list(names)
                rest.remove(name)
                return _problem([name, *rest], _word(len(text), stream))
        return self.changed("similar", task, answer, stream)

    def solved(self, task: str) -> str:
        return steps_of(*parse(task))[1]

    def concepts(self, task: str, answer: str) -> list[str]:
        return sorted(set(parse(task)[0]))

    def about(self, ideas: Sequence[str], task: str, stream: random.Random) -> Problem:
        names, text = parse(task)
        chosen = [*(idea for idea in ideas if idea in FUNCTIONS), *names][: len(names)]
        stream.shuffle(chosen)
        return _problem(chosen, _word(len(text), stream))


def _problem(names: list[str], text: str) -> Problem:
    return "(".join(reversed(names)) + f"({text}" + ")" * len(names) + "=?", steps_of(names, text)[1]


def _word(length: int, stream: random.Random) -> str:
    return "".join(stream.choice(_LETTERS) for _ in range(length))
