"""Experiments: paired intervals against hand-worked numbers, verdicts, and a whole one with a tiny model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.effects import (
    Difference,
    Experiment,
    judge,
    load_experiment,
    paired,
    run_experiment,
    verdict,
    write_result,
)
from strop.errors import ConfigurationError
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from tests.models import save_pocket_like

EFFECTS = Path(__file__).parent.parent / "effects"


def arm(seed: int) -> Run:
    return grpo(Setting(seed=seed))


EXPERIMENT = Experiment("alpha", "It helps.", arm, arm, arm, tokens=1000)


def test_a_paired_interval_by_hand() -> None:
    # differences 0.1, 0.2, 0.3: mean 0.2, spread 0.1, half width 4.303 * 0.1 / sqrt(3)
    found = paired([0.5, 0.7, 0.9], [0.4, 0.5, 0.6])
    assert found.mean == pytest.approx(0.2)
    assert found.high - found.mean == pytest.approx(4.303 * 0.1 / 3**0.5)
    assert found.mean - found.low == pytest.approx(4.303 * 0.1 / 3**0.5)


def test_pairs_cancel_what_a_seed_brings() -> None:
    found = paired([0.1, 0.5, 0.9], [0.05, 0.45, 0.85])
    assert found.low == pytest.approx(0.05) and found.high == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("effect", "beyond", "expected"),
    [
        (Difference(0.1, 0.05, 0.15), Difference(0.2, 0.1, 0.3), "holds"),
        (Difference(0.1, 0.05, 0.15), Difference(0.1, -0.1, 0.3), "undecided"),  # no better than the negative control
        (Difference(0.1, -0.05, 0.25), Difference(0.2, 0.1, 0.3), "undecided"),
        (Difference(-0.1, -0.15, -0.05), Difference(0.2, 0.1, 0.3), "does not hold"),
        (Difference(0.0, -0.01, 0.01), Difference(0.2, 0.1, 0.3), "does not hold"),  # an effect of 0.02 is ruled out
    ],
)
def test_verdicts(effect: Difference, beyond: Difference, expected: str) -> None:
    assert verdict(effect, beyond, EXPERIMENT) == expected


def test_lower_may_be_better() -> None:
    lower = replace(EXPERIMENT, higher_is_better=False)
    assert verdict(Difference(-0.1, -0.15, -0.05), Difference(-0.2, -0.3, -0.1), lower) == "holds"
    assert verdict(Difference(0.1, 0.05, 0.15), Difference(-0.2, -0.3, -0.1), lower) == "does not hold"


def test_a_result_on_disk(tmp_path: Path) -> None:
    def rows(*values: float) -> list[dict[str, Any]]:
        return [{"seed": seed, "heldout_after": value} for seed, value in enumerate(values)]

    figures = {"treatment": rows(0.6, 0.7), "control": rows(0.5, 0.6), "negative": rows(0.2, 0.3)}
    result = judge(EXPERIMENT, [0, 1], figures)
    assert result["verdict"] == "holds"
    assert result["means"] == pytest.approx({"treatment": 0.65, "control": 0.55, "negative": 0.25})
    path = write_result(tmp_path, result)
    assert path == tmp_path / "results" / "alpha.json"
    assert json.loads(path.read_text()) == result
    assert "| 1 | 0.700 | 0.600 | 0.300 |" in path.with_suffix(".md").read_text()


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 2 seeds, got 1"):
        run_experiment(EXPERIMENT, [0], tmp_path)
    with pytest.raises(ConfigurationError, match="did you mean expert-iteration"):
        load_experiment(EFFECTS, "expert-iterations")
    (tmp_path / "beta.py").write_text("x = 1\n")
    with pytest.raises(ConfigurationError, match="defines no `experiment`"):
        load_experiment(tmp_path, "beta")
    with pytest.raises(ConfigurationError, match="tokens >= 1, got 0"):
        replace(EXPERIMENT, tokens=0)


def test_the_worked_example_is_whole() -> None:
    experiment = load_experiment(EFFECTS, "expert-iteration")
    runs = [getattr(experiment, name)(3) for name in ("treatment", "control", "negative")]
    assert [run.seed for run in runs] == [3, 3, 3]
    assert len({run.worlds for run in runs}) == 1


def test_all_arms_spend_the_same_tokens(tmp_path: Path) -> None:
    """A whole experiment with a random model: every arm ends with the first step that reaches the budget."""
    model = str(save_pocket_like(tmp_path / "model"))

    def tiny(seed: int) -> Run:
        return grpo(Setting("arithmetic:1", model, seed, 1, 2, 2, max_tokens=6, heldout_tasks=2, heldout_every=0))

    experiment = Experiment("alpha", "It helps.", tiny, tiny, tiny, tokens=60)
    told: list[tuple[str, int]] = []
    result = run_experiment(experiment, [0, 1], tmp_path / "runs", lambda name, seed, _: told.append((name, seed)))
    assert told == [(name, seed) for seed in (0, 1) for name in ("treatment", "control", "negative")]
    spent = [row["tokens_generated"] for rows in result["arms"].values() for row in rows]
    assert all(60 <= tokens < 60 + 2 * 2 * 6 for tokens in spent)
    assert result["difference"] == 0.0 and result["verdict"] == "does not hold"  # three times the same run


_TINY = """
from strop.effects import Experiment
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting


def tiny(seed):
    return grpo(Setting("arithmetic:1", {model!r}, seed, 1, 2, 2, max_tokens=6, heldout_tasks=2, heldout_every=0))


experiment = Experiment("alpha", "It helps.", tiny, tiny, tiny, tokens=1000)
"""


def test_side_by_side_or_one_by_one_the_figures_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "alpha.py").write_text(_TINY.format(model=str(save_pocket_like(tmp_path / "model"))))
    experiment = replace(load_experiment(tmp_path, "alpha"), tokens=60)
    arms = []
    for jobs in (1, 2):
        result = run_experiment(experiment, [0, 1], tmp_path / f"runs{jobs}", jobs=jobs)
        arms.append({name: [{**row, "seconds": 0} for row in rows] for name, rows in result["arms"].items()})
    assert arms[0] == arms[1]


def test_an_experiment_of_no_file_runs_one_by_one_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="only an experiment of a file"):
        run_experiment(EXPERIMENT, [0, 1], tmp_path, jobs=2)
