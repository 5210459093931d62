"""The bundled text collection: sentences about made-up people and places, from one seed.

`python -m strop.environments.tools.collection` writes the file again; nothing in it is true, so no model knows it.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

SEED = 20250511
PEOPLE, TOWNS, LANDS = 120, 120, 60
HOME, LAND = "home", "land"  # of a person: a town; of a town: a land
THINGS = ("river", "lake", "hill", "food")  # of towns and lands; their names are nowhere else
_FILE = Path(__file__).parent / "facts.txt"
_STARTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def query(thing: str, place: str) -> str:
    return f"{thing} of {place}"


def sentence(thing: str, place: str, name: str) -> str:
    return f"{query(thing, place)} is {name}"


@cache
def texts() -> tuple[str, ...]:
    """All sentences of the collection."""
    return tuple(_FILE.read_text().splitlines())


@cache
def facts() -> dict[tuple[str, str], str]:
    """What stands in them: (thing, place) and its name."""
    found = (text.split(" ") for text in texts())
    return {(thing, place): name for thing, _, place, _, name in found}


def subjects(thing: str) -> list[str]:
    """Who or what has one."""
    return [place for known, place in facts() if known == thing]


def made() -> list[str]:
    """The collection from its seed."""
    stream = random.Random(SEED)
    names = [a + b + c + d for a in _STARTS for b in _VOWELS for c in _STARTS for d in _VOWELS]
    stream.shuffle(names)
    rest = iter(names)
    people, towns, lands = ([next(rest) for _ in range(count)] for count in (PEOPLE, TOWNS, LANDS))
    lines = [sentence(HOME, person, stream.choice(towns)) for person in people]
    lines += [sentence(LAND, town, stream.choice(lands)) for town in towns]
    lines += [sentence(thing, place, next(rest)) for place in (*towns, *lands) for thing in THINGS]
    stream.shuffle(lines)
    return lines


if __name__ == "__main__":
    _FILE.write_text("\n".join(made()) + "\n")
