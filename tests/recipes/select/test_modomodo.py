"""The fitted surface against the function that made its pilots, and its highest point against a fine grid."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from strop.control.samplers.fixed_mixture import Mixture
from strop.errors import ConfigurationError
from strop.launch.running.provenance_check import write_recipe
from strop.recipes import build, recipe_named
from strop.recipes.select.modomodo import Pilot, Surface, pilots_in
from strop.storage.run_source import to_source

NAMES = ("a:1", "b:1", "c:1")
SEEDS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)]  # alone, all but one, all


def outcome(weights: tuple[float, ...]) -> float:
    """A constant, a slope and curvature, as the paper's surrogate has them."""
    a, b, c = (weight / sum(weights) for weight in weights)
    return 0.3 + 0.2 * a - 0.1 * b + 0.5 * a * b + 0.3 * b * c - 0.4 * a * a - 0.2 * c * c


def pilots(mixtures: list[tuple[int, int, int]]) -> list[Pilot]:
    return [Pilot(NAMES, each, outcome(each)) for each in mixtures]


def grid(steps: int) -> list[tuple[float, float, float]]:
    return [
        (i / steps, j / steps, 1 - (i + j) / steps) for i, j in product(range(steps + 1), repeat=2) if i + j <= steps
    ]


def test_six_generic_pilots_recover_every_prediction() -> None:
    for mixtures in (SEEDS[:6], [(1, 2, 3), (3, 1, 1), (1, 5, 1), (2, 2, 1), (1, 0, 4), (0, 1, 1)]):
        surface = Surface.fitted(pilots(mixtures))
        for weights in grid(7):
            assert surface.score(weights) == pytest.approx(outcome(weights), abs=1e-9)


def test_the_highest_point_is_that_of_a_grid() -> None:
    random = np.random.default_rng(0)
    places = set()
    for _ in range(60):
        matrix = random.normal(size=(3, 3))
        surface = Surface((matrix + matrix.T) / 2)
        found = surface.best()
        assert sum(found) == pytest.approx(1.0) and min(found) >= 0.0
        highest = max(surface.score(weights) for weights in grid(30))
        assert highest - 1e-9 <= surface.score(found) <= highest + 0.03
        places.add(sum(weight > 1e-6 for weight in found))
    assert places == {1, 2, 3}, "corners, edges and the inside were tested"


def test_an_even_bowl_and_a_plane_by_hand() -> None:
    assert Surface(-np.eye(4)).best() == pytest.approx([0.25] * 4)
    assert Surface(np.ones((3, 3)) + np.diag([0.0, 0.0, 1.0])).best() == pytest.approx([0.0, 0.0, 1.0])
    assert Surface(np.ones((2, 2))).best() in [(1.0, 0.0), (0.0, 1.0)], "all equal: any corner"


def test_the_noise_of_pilots_is_averaged() -> None:
    """Least squares: two pilots of the same mixture count with their mean."""
    noisy = [*pilots(SEEDS), *(Pilot(NAMES, p.weights, p.score + 0.2) for p in pilots(SEEDS))]
    assert Surface.fitted(noisy).score((1, 2, 4)) == pytest.approx(outcome((1, 2, 4)) + 0.1)


def test_too_few_different_pilots_are_refused() -> None:
    with pytest.raises(
        ConfigurationError, match="3 environments need 6 different mixtures, and the 7 pilots have rank 5"
    ):
        Surface.fitted(pilots([*SEEDS[:5], SEEDS[0], (2, 0, 0)]))
    with pytest.raises(ConfigurationError, match="the same environments"):
        Surface.fitted([*pilots(SEEDS), Pilot(("x:1", "b:1", "c:1"), (1, 1, 1), 0.5)])
    with pytest.raises(ConfigurationError, match="at most 12"):
        Surface(np.eye(13)).best()


def test_pilots_are_read_from_finished_runs(tmp_path: Path) -> None:
    for number, weights in enumerate([*SEEDS, (5, 1, 1)]):
        run = build(recipe_named("mixture"), {"weights": tuple(map(float, weights))})
        folder = tmp_path / f"pilot-{number}"
        folder.mkdir()
        write_recipe(folder / "recipe.py", to_source(run, ""))
        summary = {"is_complete": number < 7, "heldout_after": outcome(weights) if number < 7 else 9.0}
        (folder / "summary.json").write_text(json.dumps(summary))
    other = tmp_path / "other"
    other.mkdir()
    write_recipe(other / "recipe.py", to_source(build(recipe_named("pocket"), {}), ""))
    (other / "summary.json").write_text(json.dumps({"is_complete": True, "heldout_after": 9.0}))
    found = pilots_in(tmp_path)
    assert [pilot.weights for pilot in found] == [tuple(map(float, each)) for each in SEEDS]
    assert {pilot.envs for pilot in found} == {("arithmetic:4", "countdown:3", "compose:1")}
    run = build(recipe_named("modomodo"), {"pilots": str(tmp_path)})
    assert isinstance(run.sampler, Mixture)
    assert outcome(run.sampler.weights) >= max(outcome(weights) for weights in grid(50)) - 1e-9
    with pytest.raises(ConfigurationError, match="has no finished run of a mixture"):
        pilots_in(tmp_path / "nowhere")
