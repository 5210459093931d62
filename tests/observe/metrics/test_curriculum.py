"""The curriculum of a run by hand-made ledgers: evidence, forecasts, windows, a page where there is something."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from strop.evaluation import Evaluation
from strop.observe.metrics.curriculum import Curriculum, Decile, curriculum_of, deciles
from strop.observe.report.curriculum_page import section
from strop.observe.report.write_report import render
from strop.observe.run_files.summary import summarize
from strop.storage.ledger.ledger import Ledger
from strop.storage.ledger.schema import Offered
from strop.storage.run_folder import RunFolder
from strop.success import successes
from strop.types import SUCCESS, Group, Message, Origin, Outcome, Rollout, Task, Turn
from tests.observe.folders import run_folder


def rollout(task: Task, name: str, right: float, **changes: object) -> Rollout:
    turn = Turn(np.array([1]), np.arange(3), np.zeros(3, np.float32), np.zeros(3, np.int64), Message("assistant", "4"))
    plain = {"outcome": Outcome.FINISHED, "reward": right - 0.1, "rewards": {"outcome": right, "length": -0.1}}
    made = Rollout(name, task, (turn,), **(plain | changes))  # type: ignore[arg-type]
    made.facts[SUCCESS] = right
    return made


def test_evidence_of_the_ledger_is_that_of_the_parts_that_observe(tmp_path: Path) -> None:
    """Own rollouts alone, outcomes and not shaped sums, survivors for those given up; the same by both ways."""
    ledger = Ledger(tmp_path / "ledger.db")
    task = Task((Message("user", "1"),), "4", "a", 2)
    rollouts = [
        rollout(task, "0/0", 1.0),
        rollout(task, "0/1", 0.0),
        rollout(task, "0/2", 1.0, facts={"survival": 0.25}),
        rollout(task, "0/3", 1.0, origin=Origin.TEACHER),
        rollout(task, "0/4", 0.0, outcome=Outcome.PRUNED, rewards={}),
        rollout(task, "0/5", 0.0, outcome=Outcome.FAILED, rewards={}),
    ]
    group = Group(0, task, rollouts, version=3, predicted=(0.25, 0.01))
    ledger.admitted(0, task, 3)
    ledger.finished(group, None, "dropped", 3, unused=[rollout(task, "0/6", 0.0, rewards={})])
    (found,) = ledger.offered()
    assert (found.right, found.tried) == successes(group) == (5.0, 6.0)
    assert (found.version, found.predicted, found.rollouts, found.is_trained) == (3, 0.25, 7, False)
    assert found.has_contrast and found.name == "a level 2"


def group(
    level: int = 0, version: int = 0, right: float = 1.0, predicted: float | None = 0.5, **changes: object
) -> Offered:
    plain = {"is_trained": True, "tried": 2.0, "rollouts": 2, "lowest": 0.0, "highest": 1.0}
    named = plain | {"source": "a", "level": level, "version": version, "right": right, "predicted": predicted}
    return Offered(**(named | {"tokens": 3.0, "trained_tokens": 3.0} | changes))  # type: ignore[arg-type]


def test_brier_and_deciles_by_hand() -> None:
    groups = [group(right=2, predicted=0.95), group(right=1, predicted=0.9), group(right=0, predicted=0.25)]
    found = Curriculum((*groups, group(predicted=None), group(tried=0.0, right=0.0))).calibration
    assert found is not None
    # rollouts: two right at .95, one right and one wrong at .9, two wrong at .25
    assert found.brier == pytest.approx((2 * 0.05**2 + 0.1**2 + 0.9**2 + 2 * 0.25**2) / 6)
    assert found.constant == pytest.approx(0.25)
    assert found.deciles == (Decile(1, 0.25, 0.0), Decile(2, pytest.approx(0.925), 0.75))
    assert deciles([(1.0, 2.0, 2.0)])[0].came == 1.0  # a forecast of 1 is in the last tenth
    assert Curriculum((group(predicted=None),)).calibration is None


def test_rollouts_without_gradient_are_counted_once() -> None:
    alike = {"lowest": 1.0, "highest": 1.0}
    groups = [group(rollouts=8), group(rollouts=4, is_trained=False), group(rollouts=2, **alike)]
    groups.append(group(rollouts=1, is_trained=False, **alike))
    found = curriculum_of([*groups, group(rollouts=0, tried=0.0)])
    assert found.without_gradient == {"rollouts": 15, "untrained": 5, "without_contrast": 2}
    assert found.plain()["rollouts_without_gradient"] == pytest.approx(7 / 15)
    assert len(found.groups) == 4 and curriculum_of([]).plain() == {"rollouts_without_gradient": None}


def test_pass_rates_by_level_over_time() -> None:
    """24 steps in windows of two: level 1 is offered half of the time, and what is trained on is solved more often."""
    groups = [
        group(level=1, version=version, right=version % 2 * 2.0, is_trained=version % 2 == 1) for version in range(24)
    ]
    groups += [group(level=0, version=version, right=1.0) for version in range(0, 24, 2)]
    found = Curriculum(tuple(groups))
    share, offered, trained = found.lessons.panels()
    assert [line.name for line in share.lines] == ["a level 0", "a level 1"]
    assert len(share.lines[0].points) == 12 and share.lines[0].points[0][:2] == (0.5, pytest.approx(1 / 3))
    assert {point[1] for point in offered.lines[1].points} == {0.5}
    assert {point[1] for point in trained.lines[1].points} == {1.0}
    assert len(Curriculum((group(), group(level=1))).lessons.panels()) == 2  # all were trained
    by_level = found.plain()["pass_by_level"]
    assert by_level["a level 1"] == {"groups": 24, "trained": 12, "pass_offered": 0.5, "pass_trained": 1.0}


def test_the_levels_that_were_tried_most_are_drawn() -> None:
    groups = [group(level=level) for level in range(10) for _ in range(1 if level in (3, 4) else 2)]
    found = Curriculum(tuple(groups))
    assert found.lessons.shown == [f"a level {level}" for level in (0, 1, 2, 5, 6, 7, 8, 9)]
    assert found.lessons.num_kinds == 10


def test_a_run_that_had_nothing_to_choose_keeps_its_short_page(tmp_path: Path) -> None:
    one, two = Curriculum((group(), group(version=1))), Curriculum((group(), group(level=1)))
    assert section(one, "Counts") == section(one, "") == ""
    assert "predicted" in section(one, "Offsets")
    assert "were never trained on" in section(two, "Counts")
    assert "What the curriculum cost" not in render(run_folder(tmp_path / "run", steps=4))


def test_the_page_shows_several_levels(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", steps=2)
    ledger, evil = Ledger(folder.ledger), "<b>evil</b>"
    task = Task((Message("user", "1"),), "4", evil, 2)
    made = Group(ledger.next_number, task, [rollout(task, "x", 1.0), rollout(task, "y", 0.0)], 1, predicted=(0.25, 0.1))
    ledger.admitted(made.number, task, 1)
    ledger.finished(made, None, "dropped", 1)
    ledger.sync()
    ledger.close()
    page = render(folder)
    assert "What the curriculum cost" in page and "&lt;b&gt;evil&lt;/b&gt; level 2" in page and evil not in page
    assert "Brier score" in page and page.count('<svg class="overlay"') == 3


def test_the_summary_says_how_it_went_on_the_way(tmp_path: Path) -> None:
    from strop.cli.fields.overrides import find_recipe, make_run

    folder = RunFolder(run_folder(tmp_path / "run", steps=20).path)
    run = make_run(find_recipe("pocket"), {})
    plain = summarize(run, folder, 20, True)
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    known = [(row.get("tokens_generated", 0.0), row["heldout"]) for row in rows if "heldout" in row]
    (_, first), (middle, second), (end, third) = known
    by_hand = (middle * (first + second) / 2 + (end - middle) * (second + third) / 2) / end
    assert plain["heldout_area"] == pytest.approx(by_hand)
    assert "tokens_to_target" not in plain and plain["rollouts_without_gradient"] is not None
    run.evaluation = Evaluation(target=(first + second) / 2)
    assert summarize(run, folder, 20, True)["tokens_to_target"] == pytest.approx(middle / 2)
    run.evaluation = Evaluation(target=1.0)
    assert summarize(run, folder, 20, True)["tokens_to_target"] is None
