"""Bundled text collection: sentences about made-up moons, planets and suns, generated from one seed.

`python -m strop.environments.tools.bundled_corpus` rewrites the file; nothing in it is true, so no model can know it.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

SEED = 20250511
MOONS, PLANETS, SUNS = 120, 120, 60
PLANET, SUN = "planet", "sun"  # of a moon, and of a planet
THINGS = ("size", "mass", "age")  # of planets and suns; no two are equal, and none is the name of a body
_FILE = Path(__file__).parent / "facts.txt"
_NAMES = range(100, 1000)  # numbers, which the bundled model copies well


def query(thing: str, body: str) -> str:
    return f"{thing} of {body}"


def sentence(thing: str, body: str, name: str) -> str:
    return f"{query(thing, body)} is {name}"


def named(stream: random.Random) -> str:
    """A name such as those of the collection, and perhaps one of them."""
    return str(stream.choice(_NAMES))


@cache
def texts() -> tuple[str, ...]:
    """All sentences of the collection."""
    return tuple(_FILE.read_text().splitlines())


@cache
def facts() -> dict[tuple[str, str], str]:
    """What stands in them: (thing, body) and its name."""
    found = (text.split(" ") for text in texts())
    return {(thing, body): name for thing, _, body, _, name in found}


def subjects(thing: str) -> list[str]:
    """Whose there is one."""
    return [body for known, body in facts() if known == thing]


def made() -> list[str]:
    """The collection from its seed."""
    stream = random.Random(SEED)
    names = [str(number) for number in _NAMES]
    stream.shuffle(names)
    rest = iter(names)
    moons, planets, suns = ([next(rest) for _ in range(count)] for count in (MOONS, PLANETS, SUNS))
    lines = [sentence(PLANET, moon, stream.choice(planets)) for moon in moons]
    lines += [sentence(SUN, planet, stream.choice(suns)) for planet in planets]
    lines += [sentence(thing, body, next(rest)) for body in (*planets, *suns) for thing in THINGS]
    stream.shuffle(lines)
    return lines


if __name__ == "__main__":
    _FILE.write_text("\n".join(made()) + "\n")
