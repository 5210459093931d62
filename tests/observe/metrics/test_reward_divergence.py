"""Reward and held-out accuracy that part ways are told, and nothing else is: metrics worked by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from strop.cli.commands.why import explain
from strop.cli.fields.overrides import find_recipe, make_run
from strop.observe.metrics.reward_divergence import is_fall, parting_of, sure_slope
from strop.observe.report.write_report import render
from strop.observe.run_files.summary import summarize
from tests.observe.folders import run_folder


def heldout(accuracy: float, half: float = 0.08) -> dict[str, float]:
    return {"heldout": accuracy, "heldout_low": accuracy - half, "heldout_high": accuracy + half}


def rows(after: float, rise: float = 0.01, measured: tuple[int, ...] = (0, 20, 40, 60)) -> list[dict[str, Any]]:
    """60 steps; the reward rises with a known noise, accuracy is 0.6 until step 40 and `after` at the end."""
    found = []
    for step in range(61):
        row: dict[str, Any] = {"step": step}
        row |= {"reward": 0.2 + rise * step + (0.02 if step % 2 else -0.02)} if step else {}
        row |= heldout(after if step == 60 else 0.6) if step in measured else {}
        found.append(row)
    return found


def test_a_reward_that_rises_while_accuracy_falls() -> None:
    found = parting_of(rows(after=0.4))
    assert found is not None and (found.first, found.last, found.before, found.after) == (40, 60, 0.6, 0.4)
    # steps 41 to 60: noise of +-0.02 in turn takes 0.02 from each of 10 pairs; the squares of the steps sum up to 665
    assert found.rise == pytest.approx(19 * (0.01 - 0.2 / 665))
    assert "from step 40 to 60 the reward rose by 0.184 while held-out accuracy fell from 60% to 40%" in str(found)


def test_silence_where_only_one_moves_or_neither_or_both_alike() -> None:
    assert parting_of(rows(after=0.6)) is None, "accuracy stands still"
    assert parting_of(rows(after=0.8)) is None, "both rise"
    assert parting_of(rows(after=0.4, rise=0.0)) is None, "the reward stands still"
    assert parting_of(rows(after=0.4, rise=-0.01)) is None, "both fall"
    # sqrt(0.08^2 + 0.08^2) = 0.1131: a fall by less is within noise
    assert parting_of(rows(after=0.6 - 0.113)) is None and parting_of(rows(after=0.6 - 0.114)) is not None


def test_what_came_before_the_last_third_is_another_story() -> None:
    early = rows(after=0.4)
    early[20] |= heldout(0.9)
    found = parting_of(early)
    assert found is not None and (found.first, found.before) == (40, 0.6)
    fallen_before = rows(after=0.4)
    fallen_before[40] |= heldout(0.4)
    assert parting_of(fallen_before) is None


def test_too_little_is_no_evidence() -> None:
    assert parting_of([]) is None and parting_of(rows(after=0.4, measured=(60,))) is None
    assert parting_of(rows(after=0.4, measured=(0, 60))) is not None, "before and after only: the whole run is its end"
    assert parting_of([{"step": 0, **heldout(0.6)}, {"step": 1, "reward": 1.0, **heldout(0.1)}]) is None
    broken = rows(after=0.4)
    for row in broken[41:]:
        row["reward"] = float("nan")
    assert parting_of(broken) is None


def test_the_slope_and_its_interval_by_hand() -> None:
    """(0,0) (1,2) (2,1) (3,3): slope 0.8, residual squares 1.8, se sqrt(0.9 / 5); 4.303 of it is 1.83."""
    points = [(0.0, 0.0), (1.0, 2.0), (2.0, 1.0), (3.0, 3.0)]
    assert sure_slope(points) == 0.0
    # a tenth of the residuals around the same line: se 0.0424, 4.303 of it is 0.18 < 0.8
    near = [(x, 0.3 + 0.8 * x + (y - 0.3 - 0.8 * x) / 10) for x, y in points]
    assert sure_slope(near) == pytest.approx(0.8) and sure_slope([(x, -y) for x, y in near]) == pytest.approx(-0.8)
    assert sure_slope(near[:3]) == 0.0


def test_noise_alone_is_called_a_rise_once_in_forty() -> None:
    stream = random.Random(0)
    found = [sure_slope([(float(x), stream.gauss(0, 1)) for x in range(20)]) > 0 for _ in range(4000)]
    assert 0.019 < sum(found) / 4000 < 0.031


def test_unequal_intervals_count_on_the_side_they_point_to() -> None:
    begin = {"heldout": 0.5, "heldout_low": 0.4, "heldout_high": 0.9}
    end = {"heldout": 0.35, "heldout_low": 0.0, "heldout_high": 0.45}
    assert is_fall(begin, end) and not is_fall({**begin, "heldout_low": 0.3}, end)


def test_it_stands_in_summary_page_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, run = run_folder(tmp_path / "run", steps=60), make_run(find_recipe("pocket"), {})
    assert summarize(run, folder, 60, True)["findings"] == []
    assert "part ways" not in render(folder)
    folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows(after=0.4)))
    folder.timing.write_text("".join(json.dumps({"step": step, "seconds": 1.0}) + "\n" for step in range(61)))
    capsys.readouterr()
    findings = {each["name"]: each for each in summarize(run, folder, 60, True)["findings"]}
    told = findings["reward without accuracy"]
    assert "accuracy fell" in findings
    assert told["evidence"] == str(parting_of(rows(after=0.4))) and told["is_grave"]
    assert "warning: reward without accuracy: reward and held-out accuracy part" in capsys.readouterr().err
    assert render(folder).count("</strong>: reward and held-out accuracy part ways") == 1
    state = {"loops": {}, "waiting": 0, "num_running": 0, "groups": [], "engine": {}, "still_seconds": 0.0}
    folder.status.write_text(json.dumps({"step": 60, "steps": 60, "ended": "ended", "written": 0, "pid": 0, **state}))
    explain(folder.path, with_stacks=False, as_json=False)
    assert "\n  reward and held-out accuracy part ways: from step 40 to 60" in capsys.readouterr().out
    explain(folder.path, with_stacks=False, as_json=True)
    assert json.loads(capsys.readouterr().out)["parting"].startswith("reward and held-out accuracy part ways")
