"""Tools answer what is right, say what is wrong, and leave nothing behind."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.tools import bundled_corpus
from strop.environments.tools.bm25 import Bm25
from strop.environments.tools.calculator import Calculator, value_of
from strop.environments.tools.files import Files
from strop.environments.tools.json_schema import arguments_of
from strop.environments.tools.python_notebook import Cells
from strop.environments.tools.search_tool import NOTHING, Retrieval
from strop.environments.tools.tool import WrongCall
from strop.errors import ConfigurationError
from strop.roles import Instrument
from strop.sandbox.execution import Ending, Ran
from strop.workers.untrusted_answers import NoAnswer


def answer(tool: Instrument, **arguments: Any) -> str:
    return asyncio.run(tool.call(arguments_of(json.dumps(arguments), tool.parameters)))


# ---- calculator


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1+2*3", "7"),
        ("(1+2)*3", "9"),
        ("2**3**2", "512"),
        ("-2**2", "-4"),
        ("2**-2", "0.25"),
        ("7//2-7%3", "2"),
        ("-7//2", "-4"),
        ("10-4-3", "3"),
        ("12/4/3", "1"),
        ("1/3", "0.333333333333"),
        ("1/3*3", "1"),
        (" 1.5 * 2 ", "3"),
        ("--3", "3"),
    ],
)
def test_a_calculator_reads_as_it_is_written(expression: str, value: str) -> None:
    assert answer(Calculator(), expression=expression) == value


def test_a_calculator_agrees_with_a_tree_of_the_same_expression() -> None:
    stream = random.Random(0)

    def tree(depth: int) -> tuple[str, Fraction]:
        if depth == 0:
            number = stream.randint(0, 99)
            return str(number), Fraction(number)
        (left, one), (right, other) = tree(stream.randrange(depth)), tree(stream.randrange(depth))
        sign = stream.choice("+-*/" if other else "+-*")
        values = {"+": one + other, "-": one - other, "*": one * other}
        return f"({left}){sign}({right})", values[sign] if sign in values else one / other

    for _ in range(300):
        text, value = tree(3)
        assert value_of(text) == value, text


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1+",
        "(1",
        "1)",
        "1 2",
        "*2",
        "1/0",
        "5%(3-3)",
        "0**-1",
        "2**0.5",
        "9**9**9",
        "1e5",
        "abs(1)",
        "__import__",
        "1;2",
    ],
)
def test_what_a_calculator_cannot_read_is_told(expression: str) -> None:
    with pytest.raises(WrongCall):
        value_of(expression)


@pytest.mark.parametrize("expression", ["(" * 3000, "-" * 150 + "1", "9" * 150 + "*" + "9" * 40, "2**257", "1+" * 5000])
def test_no_expression_takes_long(expression: str) -> None:
    with pytest.raises(WrongCall):
        value_of(expression)


def test_a_calculator_knows_what_to_do_with_a_sum() -> None:
    task = Arithmetic(4).task(0)
    (use,) = [Calculator().use(task)]
    assert use is not None and answer(Calculator(), **use) == task.answer


# ---- search


def test_scores_by_hand() -> None:
    """Three texts of 2, 1 and 3 words, mean 2; `red` stands in two of them, twice in the last."""
    index = Bm25(("red fox", "Fox!", "red red hat"))
    rare = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = rare * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2))
    last = rare * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert index.scores("red red") == pytest.approx({0: first, 2: last})  # a word counts once, however often asked
    once = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    hat = once * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert index.scores("a red hat")[2] == pytest.approx(last + hat)
    assert index.best("fox", 3) == ["Fox!", "red fox"] and index.best("cat", 3) == []


def test_of_equal_texts_the_first_comes_first() -> None:
    assert Bm25(("a b", "a c", "a d")).best("a", 2) == ["a b", "a c"]


def test_every_fact_is_found_by_its_own_question() -> None:
    tool = Retrieval()
    missed = [key for key, name in bundled_corpus.facts().items() if not _found(tool, key, name)]
    assert not missed and len(bundled_corpus.facts()) == len(bundled_corpus.texts()) == 120 + 120 + 180 * 3


def _found(tool: Retrieval, key: tuple[str, str], name: str) -> bool:
    return tool.index.best(bundled_corpus.query(*key), 1) == [bundled_corpus.sentence(*key, name)]


def test_the_collection_is_what_its_program_makes() -> None:
    assert list(bundled_corpus.texts()) == bundled_corpus.made()
    names = [name for (thing, _), name in bundled_corpus.facts().items() if thing in bundled_corpus.THINGS]
    assert len(set(names)) == len(names) and not set(names) & {subject for _, subject in bundled_corpus.facts()}
    planets = [
        bundled_corpus.facts()[bundled_corpus.PLANET, moon] for moon in bundled_corpus.subjects(bundled_corpus.PLANET)
    ]
    assert len(planets) == 120 and set(planets) <= set(bundled_corpus.subjects(bundled_corpus.SUN))


def test_a_search_gives_as_many_texts_as_asked_and_says_when_there_is_none() -> None:
    tool = pickle.loads(pickle.dumps(Retrieval(2, ("red fox", "fox", "hat"))))
    assert answer(tool, query="Red fox") == "red fox\nfox" and answer(tool, query="dog") == NOTHING
    with pytest.raises(ConfigurationError, match="top >= 1, got 0"):
        Retrieval(0)


# ---- Python


def test_cells_are_a_notebook_of_one_rollout() -> None:
    async def cells() -> list[str]:
        shared = Cells(seconds=0.3)
        one, other = shared.own(), shared.own()
        try:
            said = [await one.call({"code": "x = 20\nprint('once')"}), await one.call({"code": "x + 1"})]
            for code in ("y = 1/0", "while True: pass", "def f(:"):
                with pytest.raises(WrongCall) as wrong:
                    await one.call({"code": code})
                said.append(str(wrong.value))
            said.append(await one.call({"code": "x = x * 2"}) + await one.call({"code": "x"}))
            with pytest.raises(WrongCall, match="NameError"):
                await other.call({"code": "x"})
            return said
        finally:
            await shared.close()

    said = asyncio.run(cells())
    assert said[:3] == ["once", "21", "ZeroDivisionError: division by zero"] and said[3] == "the code ended by timeout"
    assert said[4].startswith("SyntaxError") and said[5] == "ok40"


def test_a_sandbox_that_is_gone_is_not_the_policys_mistake() -> None:
    class Gone:
        async def run(self, *_: Any) -> Ran:
            return Ran(Ending.LOST, stderr="no memory left")

    tool = Cells()
    tool._sandboxes.append(Gone())  # type: ignore[arg-type]
    with pytest.raises(NoAnswer, match="lost: no memory left"):
        answer(tool, code="1")


# ---- files


def test_files_are_an_rollouts_own_and_end_with_it() -> None:
    one, other = Files().own(), Files().own()
    assert answer(one, do="list") == "no files"
    assert answer(one, do="write", name="a.txt", text="hi") == "ok" and answer(one, do="read", name="a.txt") == "hi"
    assert answer(one, do="list") == "a.txt" and answer(other, do="list") == "no files"
    (folder,) = (each.path for each in one._folders)
    assert [path.name for path in folder.iterdir()] == ["a.txt"]
    asyncio.run(one.release())
    assert not folder.parent.exists()


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/b", ".hidden", "", "x" * 65, "a\0b", "..", "-r"])
def test_no_name_leaves_the_folder(name: str) -> None:
    for do in ("read", "write"):
        with pytest.raises(WrongCall):
            answer(Files(), do=do, name=name)


def test_files_are_few_and_small(tmp_path: Path) -> None:
    tool = Files()
    with pytest.raises(WrongCall, match="65536 bytes"):
        answer(tool, do="write", name="a", text="é" * 40_000)
    for number in range(32):
        answer(tool, do="write", name=f"f{number}", text="x")
    answer(tool, do="write", name="f0", text="y")
    with pytest.raises(WrongCall, match="32 files"):
        answer(tool, do="write", name="one-more", text="x")
    with pytest.raises(WrongCall, match="no file b; there are"):
        answer(tool, do="read", name="b")
    asyncio.run(tool.release())


# ---- arguments

_SCHEMA = json.dumps(
    {"properties": {"n": {"type": "integer"}, "s": {"type": "string", "enum": ["a", "b"]}}, "required": ["n"]}
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "object of n, s"),
        ("{}", "missing n"),
        ('{"n": 1, "x": 2}', "unknown x; there are n, s"),
        ('{"n": "1"}', "n must be of type integer"),
        ('{"n": true}', "n must be of type integer"),
        ('{"n": 1, "s": "c"}', "s must be one of a, b"),
    ],
)
def test_wrong_arguments_are_told(text: str, problem: str) -> None:
    with pytest.raises(WrongCall, match=problem):
        arguments_of(text, _SCHEMA)


def test_right_arguments_are_given() -> None:
    assert arguments_of('{"n": 1, "s": "b"}', _SCHEMA) == {"n": 1, "s": "b"}
    foreign = '{"properties": {"n": {"type": ["integer", "null"]}, "m": {"type": "null"}}}'
    assert arguments_of('{"n": "x", "m": 1}', foreign) == {"n": "x", "m": 1}  # the tool itself will say
