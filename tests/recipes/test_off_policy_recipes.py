"""Asynchronous recipes run, with the lag their papers use, and measure mismatch apart from staleness."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.roles import Reward
from strop.storage.run_folder import RunFolder, read_rows
from strop.training.requirements import Logprobs
from strop.weights.fingerprint import fingerprint
from tests.parts import EvenOrOdd, LongerIsBetter

RECIPES = [
    ("areal", {}, 4),
    ("areal", {"anchor": "averaged"}, 4),
    ("areal", {"anchor": "interpolated"}, 4),
    ("llamarl", {}, 1),
    ("ring_1t", {"tokens": 100}, 5),
    ("ring_1t", {"tokens": 0}, 5),
    ("missing_old_logits", {}, 4),
    ("missing_old_logits", {"old": "averaged"}, 4),
    ("vcpo", {}, 10),
    ("tba", {}, 2),
    ("dart", {"tasks": 2}, 1),
    ("asyncflow", {}, 0),
    ("flexmarl", {}, 0),
    ("rollart", {}, 1),
    ("srl", {}, 1),
    ("off_policy", {"correction": "sequence_truncated"}, 4),
]


def rewards_for(name: str) -> tuple[Reward, ...]:
    """DART's pool asks who is right."""
    return (EvenOrOdd(),) if name == "dart" else (LongerIsBetter(),)


@pytest.mark.parametrize(("name", "values", "lag"), RECIPES)
def test_three_steps(model: Path, tmp_path: Path, name: str, values: dict[str, str], lag: int) -> None:
    sizes = {"groups_per_step": 4, "group_size": 4, "max_tokens": 8, "heldout_tasks": 2, "steps": 3}
    run = build(recipe_named(name), {"model": str(model), "learning_rate": 1e-3, **sizes, **values})
    run.rewards = rewards_for(name)
    check(run)
    assert run.admission.lag == lag  # type: ignore[attr-defined]
    launch(run, tmp_path, "run")
    rows = read_rows(RunFolder(tmp_path / "run").metrics)
    assert rows[-1]["step"] == 3 and math.isfinite(rows[-1]["loss"])
    if Logprobs("old") in (run.correction.needs if run.correction else ()):  # how stale the data was depends on timing
        assert rows[-1]["mismatch"] < 1e-4
        assert rows[-1]["staleness"] == pytest.approx(rows[-1]["drift"], abs=1e-4)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("areal", {"anchor": "averaged"}),
        ("missing_old_logits", {}),
        ("vcpo", {}),
        ("tba", {"recent": 0.5}),
        ("dart", {"tasks": 2}),
    ],
)
def test_resumed_in_the_middle_it_ends_with_the_same_bits(
    model: Path, tmp_path: Path, name: str, values: dict[str, object]
) -> None:
    sizes = {"groups_per_step": 4, "group_size": 3, "max_tokens": 8, "heldout_tasks": 2, "steps": 6, "lag": 0}
    run = build(
        recipe_named(name), {"model": str(model), "learning_rate": 1e-3, "checkpoint_every": 3, **sizes, **values}
    )
    run.rewards = rewards_for(name)
    launch(run, tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    before = bits(folder)
    shutil.rmtree(folder.checkpoints / "step-6")  # as if it had been killed before
    relaunch(folder.path)
    assert bits(folder) == before


def bits(folder: RunFolder) -> tuple[str, str]:
    """Weights and metrics after the sixth step."""
    return fingerprint(load_file(folder.checkpoints / "step-6" / "model.safetensors")), folder.metrics.read_text()
