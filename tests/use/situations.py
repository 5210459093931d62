"""Ten situations of a user: the files they bring, and the settings with which they start a recipe.

Sums are asked for in each, because the bundled model can do about half of them, so that groups have contrast.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from strop.recipes import parameters_of, recipe_named

HERE = Path(__file__).parent
ROWS = 160
# parameters of recipes that name an LLM from outside; a folder will not do for a stub
PARTS = ["judge", "judges", "teacher", "teachers", "guide", "llm_client", "simulator", "generator", "reflects", "meta"]
PARTS += ["reward_model", "search", "experts", "router", "labels", "oracle", "rival"]


@dataclass(frozen=True)
class Situation:
    """What a user has."""

    number: int
    name: str
    rows: Callable[[], list[dict[str, Any]]] | None  # of rows.jsonl; None: an environment of their own
    settings: tuple[dict[str, str], ...] = field(default=({},))  # of one run each; {here} is the folder with the files
    model: str = "own"  # own, coder or other
    stubs: bool = False  # each named part is an address that records what it is asked

    @property
    def env(self) -> str:
        return "{here}/own.py:numbers" if self.rows is None else "{here}/rows.jsonl"


@cache
def sums() -> tuple[tuple[int, ...], ...]:
    """Terms of each row, no two alike."""
    stream = random.Random(11)
    found = {tuple(stream.randint(10, 99) for _ in range(3 if place % 2 else 2)): None for place in range(2 * ROWS)}
    return tuple(found)[:ROWS]


def asked(terms: tuple[int, ...]) -> str:
    return "+".join(map(str, terms)) + "=?"


def steps(terms: tuple[int, ...]) -> list[str]:
    """Partial sums in words."""
    total, said = terms[0], []
    for term in terms[1:]:
        said.append(f"{total} plus {term} is {total + term}.")
        total += term
    return said


def numbers() -> list[dict[str, Any]]:
    return [{"prompt": asked(terms), "answer": str(sum(terms))} for terms in sums()]


def latex() -> list[dict[str, Any]]:
    return [{"problem": asked(terms), "answer": f"$\\frac{{{2 * sum(terms)}}}{{2}}$"} for terms in sums()]


def questions() -> list[dict[str, Any]]:
    return [{"prompt": asked(terms)} for terms in sums()]


def preferences() -> list[dict[str, Any]]:
    return [
        {"prompt": asked(terms), "chosen": f"It is {sum(terms)}.", "rejected": f"It is {sum(terms) + 10}."}
        for terms in sums()
    ]


def programs() -> list[dict[str, Any]]:
    """Programs that the model was shown, with tests as a user writes them."""
    from strop.environments.bundled.programs import Programs
    from strop.environments.code.cases import cases_of

    env, found = Programs(1), dict[str, dict[str, Any]]()
    for place in range(2 * ROWS):
        task = env.task(place)
        cases = cases_of(task)
        tests = [
            f"assert f({', '.join(map(repr, given))}) == {due!r}"
            for given, due in zip(cases.inputs, cases.outputs, strict=True)
        ]
        found[task.messages[-1].content] = {"prompt": task.messages[-1].content, "tests": tests}
    return list(found.values())[:ROWS]


def prose() -> list[dict[str, Any]]:
    return [
        {
            "question": asked(terms),
            "solution": " ".join([*steps(terms), f"So {sum(terms)}"]),
            "answer": str(sum(terms)),
        }
        for terms in sums()
    ]


SITUATIONS = (
    Situation(1, "numbers", numbers),
    Situation(2, "LaTeX", latex, ({"answer": "math"},)),
    Situation(3, "own reward", questions, ({"reward": "{here}/own.py:close"},)),
    Situation(4, "own scale", numbers, ({"reward": "{here}/own.py:signed"}, {"reward": "{here}/own.py:ten"})),
    Situation(5, "preferences", preferences),
    Situation(6, "code", programs, model="coder"),
    Situation(7, "prose", prose),
    Situation(8, "own env", None),
    Situation(9, "stubs", numbers, stubs=True),
    Situation(10, "other model", numbers, model="other"),
)
BY_NUMBER = {each.number: each for each in SITUATIONS}


def bring(situation: Situation, folder: Path) -> None:
    """Write the user's files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own.py").write_text((HERE / "own.py").read_text())
    if situation.rows is not None:
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in situation.rows()))


def uses_parts(name: str) -> list[str]:
    """Parameters of a recipe that name a part."""
    known = parameters_of(recipe_named(name))
    return [part for part in PARTS if part in known and known[part].type is str]
