"""`strop compare` (strop.cli.commands.compare): equal tokens, intervals over seeds, a page that needs nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from strop.cli.commands.compare import compare, difference_lines, plan_of
from strop.errors import ConfigurationError, DataError
from tests.tiny_models import save_pocket_like

FIELDS = ["groups_per_step=2", "group_size=4", "max_tokens=8", "heldout_tasks=4", "heldout_every=2"]


def test_two_recipes_over_two_seeds_and_then_a_third(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    words = ["grpo", "rloo", f"model={model}", *FIELDS]
    summary = compare(words, seeds=2, tokens=300, jobs=2, root=tmp_path, name="both")
    assert list(summary["arms"]) == ["grpo", "rloo"]
    for found in summary["arms"].values():
        assert len(found["by_seed"]) == 2 and all(run["tokens_generated"] >= 300 for run in found["runs"])
    assert summary["arms"]["grpo"]["against_first"] is None
    assert json.loads((tmp_path / "both" / "summary.json").read_text()) == summary
    page = (tmp_path / "both" / "compare.html").read_text()
    assert page.count("<svg") == 4 and page.count('class="band"') == 8
    assert not re.search(r'(src|href)="(?!data:)', page) and "<script" not in page
    with pytest.raises(ConfigurationError, match="holds another comparison"):
        plan_of(words, 2, 301, tmp_path, "both")

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "both").glob("*-seed*/summary.json")}
    more = compare(words, seeds=3, tokens=300, jobs=2, root=tmp_path, name="both")
    assert all(found["by_seed"][:2] == summary["arms"][name]["by_seed"] for name, found in more["arms"].items())
    assert all(path.stat().st_mtime_ns == at for path, at in before.items()), "a finished run was run again"

    runs = [str(tmp_path / "both" / f"{name}-seed1") for name in ("rloo", "grpo")]  # as they are: nothing is run
    again = compare(runs, seeds=1, tokens=1, jobs=1, root=tmp_path, name="as-they-are")
    assert list(again["arms"]) == ["rloo-seed1", "grpo-seed1"]
    gain = again["arms"]["grpo-seed1"]["tasks_against_first"]  # both were measured on the same 4 tasks
    assert gain["low"] < gain["mean"] < gain["high"] and gain["mean"] == pytest.approx(
        again["arms"]["grpo-seed1"]["by_seed"][0] - again["arms"]["rloo-seed1"]["by_seed"][0]
    )
    assert again["arms"]["grpo-seed1"]["by_seed"] == summary["arms"]["grpo"]["by_seed"][1:]
    assert not list((tmp_path / "as-they-are").glob("*-seed*"))
    pairs = [" ".join(str(tmp_path / "both" / f"{name}-seed{seed}") for seed in (0, 1)) for name in ("grpo", "rloo")]
    paired = compare(pairs, seeds=1, tokens=1, jobs=1, root=tmp_path, name="pairs")
    assert paired["arms"]["rloo-seed0 and 1 more"]["against_first"] == summary["arms"]["rloo"]["against_first"]


def test_settings_of_one_recipe(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    words = ["grpo minibatches=1", "grpo minibatches=2 learning_rate=1e-3", f"model={model}", *FIELDS]
    plan = plan_of(words, 1, 100, tmp_path, "")
    assert [arm.name for arm in plan.arms] == words[:2]
    assert [job.make().minibatches for job in plan.jobs()] == [1, 2]
    assert [job.make().groups_per_step for job in plan.jobs()] == [2, 2]
    assert plan.folder == tmp_path / "grpo-minibatches-1-grpo-minibatches-2-learning_rate-1e-3"
    summary = compare(words, seeds=1, tokens=100, jobs=1, root=tmp_path, name="")
    assert list(summary["arms"]) == words[:2]


def test_what_tells_arms_apart_is_said() -> None:
    sure, open_ = {"mean": 0.1, "low": 0.05, "high": 0.15}, {"mean": 0.1, "low": -0.05, "high": 0.25}
    alone = {"mean": 0.1, "low": None, "high": None}
    arms = {
        "a": {},
        "b": {"by_seed": [0.5, 0.6], "against_first": sure, "tasks_against_first": open_},
        "c": {"by_seed": [0.5], "against_first": alone, "tasks_against_first": open_},
        "d": {"by_seed": [0.5], "against_first": alone, "tasks_against_first": None},
    }
    b, c, d = difference_lines(arms)
    assert b.startswith("b minus a: +10.0 points (+5.0 to +15.0) over 2 seeds; +10.0 points (-5.0 to +25.0) over the")
    assert "power" not in b and c.endswith("over the tasks of these runs: no difference above 21.4 points at 80% power")
    assert d.startswith("d minus a: no interval: it needs 2 seeds")


def test_mistakes_show_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 2 different arms, got grpo; put settings of one recipe"):
        plan_of(["grpo", "env=guess:1"], 1, 100, tmp_path, "")
    with pytest.raises(ConfigurationError, match="at least 2 different arms, got grpo, grpo"):
        plan_of(["grpo", "grpo"], 1, 100, tmp_path, "")
    with pytest.raises(ConfigurationError, match="rloo"):
        plan_of(["grpo", "rlooo"], 1, 100, tmp_path, "")
    with pytest.raises(ConfigurationError, match="clip"):
        plan_of(["grpo", "rloo", "clipp=1"], 1, 100, tmp_path, "")
    with pytest.raises(ConfigurationError, match="device"):
        plan_of(["grpo", "rloo", "device=cuba"], 1, 100, tmp_path, "")
    assert not list(tmp_path.iterdir())


def test_an_unfinished_run_is_not_compared(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recipe.py").write_text("")
    with pytest.raises(DataError, match="no held-out accuracy after training"):
        compare([str(tmp_path / "a"), str(tmp_path / "b")], 1, 1, 1, tmp_path / "out", "")
