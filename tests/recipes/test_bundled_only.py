"""Aids of the bundled model: warm-ups and temperatures above 1 are for it and its environments, unless asked for."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path

import pytest

from strop.observe.run_files.summary import warmup_harm
from strop.recipes import build, find_recipes, recipe_named
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    made = [{"prompt": f"what is {n} plus {n + 1}?", "answer": str(2 * n + 1)} for n in range(24)]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return str(path)


def test_a_warmup_is_made_for_bundled_environments_and_elsewhere_where_it_is_asked_for(rows: str) -> None:
    assert shown(Setting(), "grpo", BundledOnly(3)) is not None
    own = Setting(env=rows)
    assert shown(own, "grpo", BundledOnly(3)) is None
    asked = shown(own, "grpo", 3)
    assert asked is not None and asked.steps == 3 and asked.groups_per_step < 24, "no more than the rows there are"


@pytest.mark.parametrize("recipe", ["rag_rl", "verltool", "router_r1"])
def test_on_a_users_table_recipes_have_no_warmup(recipe: str, rows: str) -> None:
    made = recipe_named(recipe)
    assert build(made, {}).warmup is not None
    assert build(made, {"env": rows}).warmup is None


def test_a_temperature_above_one_is_that_of_the_bundled_environment(rows: str) -> None:
    made = recipe_named("grpo_care")
    assert build(made, {}).sampling.temperature == 1.6
    assert build(made, {"env": rows}).sampling.temperature == 1.0
    assert build(made, {"env": rows, "temperature": 1.6}).sampling.temperature == 1.6


def test_no_parameter_of_a_recipe_is_named_like_a_field_of_its_setting() -> None:
    names = {field.name for field in fields(Setting)}
    clashes = {
        recipe: sorted(own & names)
        for recipe, made in find_recipes().items()
        if (own := {n for n, p in inspect.signature(made).parameters.items() if not isinstance(p.default, Setting)})
        & names
    }
    assert not clashes


def test_a_warmup_that_hurt_is_named() -> None:
    fell = {"heldout_before": 0.406, "heldout_after": 0.0, "heldout_gain": {"mean": -0.406, "low": -0.6, "high": -0.2}}
    assert "lowered held-out accuracy from 40.6% to 0.0%: warmup_steps=0" in warmup_harm(fell)
    assert not warmup_harm(fell | {"heldout_gain": {"mean": -0.02, "low": -0.1, "high": 0.06}})
    assert not warmup_harm({"heldout_gain": None})
