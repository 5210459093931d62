"""Recipes that learn in words: stopped and resumed they go on to the same bits, trained again from the ledger too, and
nothing of a held-out task is ever in a library."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.capabilities import inside
from strop.environments.data.heldout_split import prompt_of
from strop.generate.memory.store import Library
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_source import from_source

STEPS = 2
SIZES = {
    "steps": STEPS,
    "groups_per_step": 2,
    "group_size": 2,
    "heldout_tasks": 2,
    "heldout_every": 1,
    "max_tokens": 48,
}
# at limits that are reached within a few groups
RECIPES: dict[str, dict[str, Any]] = {
    "core": {"most": 1},
    "xskill": {"most": 1},
    "slea_rl": {"most_golden": 1, "most_warnings": 1, "start": 1},
    "lightsearcher": {"most": 1, "every": 1, "tasks": 2},
}
SEARCHES: dict[str, dict[str, Any]] = {
    "contextevolve": {"iterations": 2},
    "rtv_pdr": {"rollouts": 3, "kept": 2, "votes": 2},
    "sage_abstraction": {},
}


def made(recipe: str) -> Run:
    return replace(build(recipe_named(recipe), SIZES | (RECIPES | SEARCHES)[recipe]), checkpoint_every=1)


def left(path: Path) -> tuple[str, str, dict[str, Any]]:
    """Metrics, ledger and memory of a run."""
    ledger = Ledger(path / "ledger.db", read_only=True)
    assert ledger.violations() == []
    digest = ledger.digest()
    ledger.close()
    roles = json.loads((path / "checkpoints" / f"step-{STEPS}" / "roles.json").read_text())["roles"]
    return (path / "metrics.jsonl").read_text(), digest, roles


@pytest.mark.parametrize("recipe", RECIPES)
def test_stopped_and_resumed_it_goes_on_with_its_memory(recipe: str, tmp_path: Path) -> None:
    launch(made(recipe), tmp_path, "whole")
    launch(replace(made(recipe), steps=1), tmp_path, "parts")
    file = tmp_path / "parts" / "recipe.py"
    file.write_text(file.read_text().replace("steps=1,", f"steps={STEPS},"))
    relaunch(tmp_path / "parts", changed_anyway=True, trust=True)
    whole, parts = left(tmp_path / "whole"), left(tmp_path / "parts")
    assert whole == parts
    assert all(each.is_equal for each in retrain(tmp_path / "whole"))
    run = from_source(tmp_path / "whole" / "recipe.py")
    libraries = inside(run, Library)
    states = [json.loads(each) for each in {json.dumps(each) for each in whole[2].values() if "lessons" in each}]
    assert len(libraries) == len(states), "training and measuring share their memory"
    for library, state in zip(libraries, states, strict=True):  # all of a run have the same limit here
        library.restore(state)
        library.catch_up()
    lessons = [lesson for library in libraries for lesson in library.state()["lessons"]]
    shelves = Counter(lesson["category"] for lesson in lessons)
    assert shelves and max(shelves.values()) == max(library.most for library in libraries), "not one too many"
    asked = [prompt_of(run.envs[0].task(index, heldout=True)) for index in range(SIZES["heldout_tasks"])]
    assert not any(prompt in lesson["about"] for lesson in lessons for prompt in asked), "a held-out task left a lesson"


@pytest.mark.parametrize("recipe", SEARCHES)
def test_a_search_has_the_same_bits_twice_and_from_its_ledger(recipe: str, tmp_path: Path) -> None:
    for name in ("one", "other"):
        launch(made(recipe), tmp_path, name)
    one, other = left(tmp_path / "one"), left(tmp_path / "other")
    assert one == other and all(each.is_equal for each in retrain(tmp_path / "one"))
    rows = [json.loads(line) for line in one[0].splitlines()]
    ledger = Ledger(tmp_path / "one" / "ledger.db", read_only=True)
    sampled = sum(tokens for (tokens,) in ledger._rows("SELECT tokens FROM rollouts"))
    ledger.close()
    assert rows[-1]["tokens_generated"] == sampled > rows[-1]["tokens_trained"], "what was thrown away is paid for"
