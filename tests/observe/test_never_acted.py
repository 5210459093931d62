"""Runs whose mechanism cannot act say so when they end: in the terminal, in the report and to `strop doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.catalogue.record import records
from strop.cli.commands.doctor import doctor
from strop.generate.llm_clients.without_model import Canned
from strop.launch.running.launch import launch
from strop.observe.examine import examine, judged
from strop.observe.health import HealthFinding
from strop.observe.report.write_report import render
from strop.observe.run_files.run_history import History
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage.run_folder import RunFolder

SIZES: dict[str, Any] = {
    "steps": 1,
    "groups_per_step": 2,
    "group_size": 2,
    "max_tokens": 24,
    "heldout_tasks": 1,
    "heldout_every": 0,
}
SOLVED: dict[str, Any] = {"env": "arithmetic:1", "temperature": 0.05}  # every rollout is right
WHOLE, PART = "the mechanism never acted", "a part of the mechanism never acted"


def one_minibatch(run: Run) -> Run:
    return replace(run, minibatches=1)


def one_sided_judge(run: Run) -> Run:
    """A judge that prefers what it reads first, in both orders."""
    wins, truth = run.rewards
    judge = Canned({"": "core, first, 3: It stands first."})
    return replace(run, rewards=(replace(wins, judge=judge, check=None), truth), allow_constant_completions=True)  # type: ignore[type-var]


# by what keeps the mechanism from acting: recipe, fields, change of the run, finding, and words of its evidence
PLANTED: dict[str, tuple[str, dict[str, Any], Callable[[Run], Run], str, str]] = {
    "all groups solved": ("grpo", SOLVED, one_minibatch, WHOLE, "of 2 groups 2 were all right and 0 all wrong"),
    "hints on tasks never failed": ("ghpo", SOLVED, one_minibatch, WHOLE, "share/guided was never reported"),
    "nothing to demonstrate": ("relift", SOLVED, one_minibatch, WHOLE, "of 2 groups 2 were all right"),
    "tasks written after failures alone": ("webrl", SOLVED, one_minibatch, WHOLE, "written was never reported"),
    "arms that are all solved": (
        "dump",
        SOLVED | {"env": "arithmetic:1+arithmetic:2"},
        one_minibatch,
        WHOLE,
        "preference stayed at 0",
    ),
    "all ratios are one": ("gspo", {}, one_minibatch, WHOLE, "clipped_share stayed at 0"),
    "no lag": ("areal", {"lag": 0}, one_minibatch, WHOLE, "lag=0: generation never ran ahead of training"),
    "a period longer than the run": ("moving_reference", {}, one_minibatch, WHOLE, "may need every=1"),
    "a library that is never read": ("sage_skills", {"max_tokens": 2}, one_minibatch, WHOLE, "fact/used stayed at 0"),
    "a judge that always says the same": ("openrs", {}, one_sided_judge, WHOLE, "fact/decided stayed at 0"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_mechanism_that_cannot_act_is_named(planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, fields, changed, name, evidence = PLANTED[planted]
    run = changed(build(recipe_named(recipe), SIZES | fields))
    run.warmup = None
    launch(run, tmp_path, "idle")
    folder = RunFolder(tmp_path / "idle")
    found = {each.name: each for each in examine(folder)}
    assert evidence in found[name].evidence, found
    assert f"strop papers {records()[recipe].key}" in found[name].remedy
    assert f"{name}: in 1 step" in capsys.readouterr().err
    assert render(folder).count(f"<strong>{name}</strong>") == 1
    assert doctor([folder.path], as_json=False) == int(name == WHOLE)


def never_acted(
    recipe: str, metrics: dict[str, float], before: list[dict[str, float]] | None = None
) -> HealthFinding | None:
    rows = [{"step": step, **metrics} for step in range(1, 4)]
    settings = {"recipe": repr(recipe), "steps": "3"} | ({} if before is None else {"warmup": "Run"})
    found = judged(History(rows, settings, before=before or ()))
    return next((each for each in found if each.name in (WHOLE, PART)), None)


def test_a_mechanism_that_acts_is_not_named() -> None:
    assert never_acted("grpo", {"advantage": 0.1, "reference_kl": 1e-3}) is None
    assert never_acted("of a file of my own", {"advantage": 0.0}) is None


def test_a_part_that_rests_is_a_note() -> None:
    found = never_acted("grpo", {"advantage": 0.1, "reference_kl": 0.0})
    assert found is not None and found.name == PART and not found.is_grave
    assert "in 3 steps reference_kl stayed at 0; its files do not say why" in found.evidence


def test_a_warm_up_that_was_left_out_is_not_missed() -> None:
    assert never_acted("rlvr_world", {"reward/change_f1": 0.5}) is None
    assert never_acted("rlvr_world", {"reward/change_f1": 0.5}, [{"step": 1, "nll": 0.5}]) is None
    found = never_acted("rlvr_world", {"reward/change_f1": 0.5}, [{"step": 1}])
    assert found is not None and "warmup/nll was never reported" in found.evidence


def test_a_run_that_has_hardly_begun_is_not_judged() -> None:
    settings = {"recipe": "'grpo'", "steps": "100"}
    rows = [{"step": step, "advantage": 0.0, "reference_kl": 0.0} for step in range(1, 9)]
    assert [each.name for each in judged(History(rows, settings))] == [WHOLE]
    assert judged(History(rows[:7], settings)) == []
