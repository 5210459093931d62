"""Facts of a run folder: whole, running, killed, or not a run's at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strop import recipe, train
from strop.cli.commands.train import ending
from strop.observe.run_files.run_info import constants, envs_of, find_runs, is_running, read_facts
from strop.storage.run_folder import RunFolder, read_rows
from tests.observe.folders import run_folder


def test_a_whole_run(tmp_path: Path) -> None:
    facts = read_facts(run_folder(tmp_path / "one", steps=20))
    assert (facts.name, facts.recipe, facts.seed, facts.step, facts.steps) == ("one", "pocket", 0, 20, 20)
    assert facts.state == "complete" and facts.envs == "arithmetic 4" and facts.model == "pocket"
    assert facts.before == pytest.approx((0.22, 0.14, 0.29))
    assert facts.seconds == pytest.approx(20 * 1.4) and facts.tokens_generated == 34_000


def test_states(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "half", steps=5, planned=9)
    assert read_facts(folder).state == "stopped" and not is_running(folder)
    folder.acquire()
    assert read_facts(RunFolder(folder.path)).state == "running"
    folder.release()
    folder.summary.unlink()  # killed: no summary, a last line cut short
    folder.metrics.write_text(folder.metrics.read_text()[:-20])
    assert read_facts(folder).state == "stopped" and read_facts(folder).step == 4


def test_a_recipe_is_read_and_not_run(tmp_path: Path) -> None:
    written = tmp_path / "recipe.py"
    written.write_text("open('ran', 'w')\nrun = Run(envs=(Compose(2, seed=1), Guess(level=3)), seed=4, losses=(x,))\n")
    assert constants(written) == {"seed": 4} and envs_of(written) == "compose 2, guess 3"
    written.write_text("run = (")
    assert constants(written) == {} and envs_of(written) == ""


def test_runs_are_found_by_their_recipe(tmp_path: Path) -> None:
    assert find_runs(tmp_path / "missing") == []
    run_folder(tmp_path / "a", steps=1)
    (tmp_path / "b").mkdir()
    assert [run.path.name for run in find_runs(tmp_path)] == ["a"]


def test_one_number_of_tokens_everywhere_and_no_accuracy_where_nothing_is_held_out(tmp_path: Path) -> None:
    """Generation that runs ahead makes groups which no step counts any more."""
    small: dict[str, Any] = {
        "env": "keyvalue:2",
        "steps": 2,
        "groups_per_step": 2,
        "group_size": 4,
        "heldout_tasks": 0,
    }
    summary = train(recipe("grpo", lag=2, **small), "ahead", tmp_path, quiet=True)
    folder = RunFolder(tmp_path / "ahead")
    last, facts = read_rows(folder.metrics)[-1], read_facts(folder)
    for name, told in (("tokens_generated", facts.tokens_generated), ("rollouts", facts.rollouts)):
        assert summary[name] == told == last[name] > 0
    assert summary["heldout_before"] is None and not any(name.startswith("heldout") for name in last)
    assert "held-out accuracy not measured" in (said := ending(summary)) and "nan" not in said
