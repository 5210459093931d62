"""Words of the command line: what they mean, and what is said when they mean nothing."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

from strop.cli.fields.arguments import parse_words
from strop.cli.fields.overrides import find_recipe, make_run
from strop.cli.fields.text_to_values import describe, read_as
from strop.errors import ConfigurationError
from strop.recipes import find_recipes, parameters_of
from strop.run import Run


def made(*words: str) -> Run:
    wish = parse_words(words)
    return make_run(find_recipe(wish.recipe), wish.overrides)


def refusal(*words: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        made(*words)
    return str(caught.value)


@pytest.mark.parametrize("words", [["steps=7"], ["--steps", "7"], ["--steps=7"], ["steps=7e0"]])
def test_three_ways_to_set_a_field(words: list[str]) -> None:
    assert made("grpo", *words).steps == 7


def test_words_are_told_apart() -> None:
    wish = parse_words(["grpo", "--learning-rate", "1e-3", "--constant-reward", "lag=2", "--seed=-1"])
    assert wish.recipe == "grpo" and wish.names_recipe
    assert wish.overrides == {"learning_rate": "1e-3", "constant_reward": "true", "lag": "2", "seed": "-1"}
    assert parse_words([]).recipe == "pocket" and not parse_words([]).names_recipe
    assert parse_words(["--steps", "5"]).recipe == "pocket"
    assert parse_words(["grpo", "--help"]).wants_help


def test_fields_deep_inside_a_run() -> None:
    run = made(
        "grpo", "trainer.betas=0.8,0.95", "losses.0.low=0.1", "admission.lag=3", "trainer.clip_norm=none", "epochs=2"
    )
    plain: Any = made("grpo")
    changed: Any = run
    assert changed.trainer.betas == (0.8, 0.95) and changed.trainer.clip_norm is None
    assert changed.trainer.learning_rate == plain.trainer.learning_rate
    assert changed.losses[0].low == 0.1 and changed.losses[0].high == plain.losses[0].high
    assert changed.losses[1] == plain.losses[1]
    assert changed.admission.lag == 3 and changed.epochs == 2 and plain.admission.lag == 0


def test_every_recipe_can_be_made_and_seeded() -> None:
    for name, recipe in find_recipes().items():
        required = [f"{each.name}=FOLDER" for each in parameters_of(recipe).values() if each.is_required]
        run = made(name, "seed=5", "steps=3", *required)
        assert run.seed == 5 and run.recipe == name
    with pytest.raises(ConfigurationError, match="kdrl needs teacher="):
        made("kdrl")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["grop"], ["'grop'", "grpo"]),
        (["stepz=5"], ["'stepz'", "steps"]),
        (["trainer.learning_rat=1"], ["trainer.learning_rate"]),
        (["weight_decay=1"], ["trainer.weight_decay"]),
        (["steps=many"], ["steps", "a whole number", "'many'"]),
        (["steps=1.5"], ["a whole number", "'1.5'"]),
        (["learning_rate=fast"], ["a number", "'fast'"]),
        (["learning_rate=nan"], ["a number", "'nan'"]),
        (["constant_reward=maybe"], ["true or false", "'maybe'"]),
        (["trainer.betas=0.9"], ["2 values", "'0.9'"]),
        (["admission=fast"], ["BoundedLag", "admission.lag"]),
        (["grpo", "dapo"], ["'dapo'", "grpo"]),
        (["envs.0.level=2"], ["env=NAME:LEVEL"]),
        (["env=arithmetik:1"], ["arithmetic"]),
        (["nowhere.py"], ["nowhere.py"]),
    ],
)
def test_refusals_say_what_would_be_right(words: list[str], parts: list[str]) -> None:
    message = refusal(*words)
    assert "\n" not in message
    for part in parts:
        assert part in message


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1_000", int, 1000),
        ("1e3", int, 1000),
        ("-2", int, -2),
        ("inf", float, float("inf")),
        ("No", bool, False),
        ("1", bool, True),
        ("1,2,3", tuple[int, ...], (1, 2, 3)),
        ("", tuple[int, ...], ()),
        ("a,b", tuple[str, ...], ("a", "b")),
        ("('a', \"b\")", tuple[str, ...], ("a", "b")),
        ("it's", tuple[str, ...], ("it's",)),
        ("none", int | None, None),
        ("4", int | None, 4),
        ("k3", Literal["k1", "k3"], "k3"),
        ("red", Colour, Colour.RED),
        ("x/y", Path, Path("x/y")),
    ],
)
def test_text_as_values(text: str, kind: Any, value: Any) -> None:
    assert read_as(text, kind) == value


@pytest.mark.parametrize(("text", "kind"), [("k2", Literal["k1", "k3"]), ("blue", Colour), ("x", int | None)])
def test_text_that_does_not_fit(text: str, kind: Any) -> None:
    with pytest.raises(ValueError):
        read_as(text, kind)


def test_types_in_words() -> None:
    assert describe(int | None) == "a whole number or none"
    assert describe(tuple[int, ...]) == "a list (a,b,...), each a whole number"
    assert describe(Literal["a", "b"]) == "one of a, b"


def test_a_recipe_may_be_a_file(tmp_path: Path) -> None:
    function = tmp_path / "mine.py"
    function.write_text(
        "from strop.recipes.classics.grpo import grpo\n"
        "from strop.recipes.setting import Setting\nfrom strop.run import Run\n"
        "def mine(steps: int = 3) -> Run:\n    return grpo(Setting(steps=steps))\n"
    )
    assert made(str(function)).steps == 3
    assert made(str(function), "steps=9", "admission.lag=1").steps == 9
    plain = tmp_path / "plain.py"
    plain.write_text("from strop.recipes.classics.grpo import grpo\nrun = grpo()\n")
    assert made(str(plain), "steps=4").steps == 4
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    assert "`run`" in refusal(str(empty))
