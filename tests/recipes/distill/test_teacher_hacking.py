"""Teacher hacking: detection on curves, and a loss that only reports metrics."""

from __future__ import annotations

import json
from math import log
from pathlib import Path

import pytest
import torch

from strop.errors import ConfigurationError, ModelError
from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.distill.teacher_hacking import HackingReport, MetricsOnly, departs, power_law, turned
from strop.training.losses.exact_kl import ExactKl
from strop.training.objective import Objective
from strop.training.requirements import Logits
from tests.building import Said, make_batch
from tests.generate.talking import save_folder
from tests.tiny_models import save_pocket_like

STEPS = [float(step) for step in range(1, 41)]


def test_a_power_law_is_found_and_never_flagged() -> None:
    for scale, exponent in ((2.0, 0.5), (0.1, 1.5), (3.0, 0.0)):
        values = [scale * step**-exponent for step in STEPS]
        assert power_law(STEPS, values) == pytest.approx((scale, exponent))
        assert not departs(STEPS, values)
    assert not departs([1.0, 2.0], [3.0, 1.0]), "too few points"


def test_a_proxy_off_its_power_law_is_flagged() -> None:
    values = [step**-0.5 for step in STEPS[:20]] + [step**-1.5 * 20 for step in STEPS[20:]]
    assert departs(STEPS, values)  # the last one is half of what the law says: log 2 > .25


def test_hacking_needs_an_early_golden_minimum_and_a_falling_proxy() -> None:
    proxy = [4.0, 3.0, 2.0, 1.5, 1.2, 1.0]
    assert turned(proxy, [4.0, 3.0, 2.9, 3.1, 3.4, 3.6], 3) == 2
    assert turned(proxy, [4.0, 3.0, 2.9, 3.1, 3.4, 3.6], 4) is None, "three points behind"
    assert turned(proxy, [4.0, 3.0, 2.9, 2.8, 2.7, 2.6], 1) is None, "it still falls"
    assert turned([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1) is None, "both rise: a diverging student is not hacking"


def rows(golden: list[float]) -> list[dict[str, float]]:
    return [{"step": i + 1, "kl": 1 / (i + 1), "golden/kl": value} for i, value in enumerate(golden)]


def test_the_report_averages_over_steps_and_is_written_in_the_end(tmp_path: Path) -> None:
    report = HackingReport("kl", "golden/kl", window=2)
    found = report.judged(rows([3.0, 2.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0]))
    assert found["is_hacked"] and found["golden_minimum_at"] == 4 and found["golden"] == 3.5
    assert found["proxy"] == pytest.approx((1 / 9 + 1 / 10) / 2)
    shorter = report.judged(rows([3.0, 2.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]))
    assert not shorter["is_hacked"], "two points after the minimum, three are needed"
    report.open(tmp_path, {})
    (tmp_path / "metrics.jsonl").write_text("")
    report.end()
    assert not (tmp_path / "hacking.json").exists()
    with pytest.raises(ConfigurationError, match="window >= 1, got 0"):
        HackingReport("kl", "golden/kl", 0)


def test_a_run_as_long_as_the_recipe_makes_it_can_be_found_hacked() -> None:
    run = build(recipe_named("teacher_hacking"), {"teacher": "pocket", "oracle": "pocket"})
    (report,) = run.trackers
    assert isinstance(report, HackingReport)
    steps = range(1, run.steps + 1)
    found = report.judged([{"step": i, "forward_kl": 1 / i, "golden/forward_kl": 1.0 + abs(i - 45)} for i in steps])
    assert found["is_hacked"] and found["golden_minimum_at"] == 50
    straight = [{"step": i, "forward_kl": 1 / i, "golden/forward_kl": 2 / i} for i in steps]
    assert not report.judged(straight)["is_hacked"]


def test_the_golden_loss_has_metrics_and_no_gradient() -> None:
    """KL(other || policy) of (1/2, 1/2) and (1/4, 3/4): log 2 - log(3) / 2."""
    logits = torch.tensor([[0.0, 0.0], [log(1 / 4), log(3 / 4)]], dtype=torch.float64).requires_grad_()
    batch = make_batch([[log(0.25)]])
    output = Said(logits.log_softmax(-1)[:, 0], torch.zeros(2), logits, torch.zeros(2, dtype=torch.int64))
    output.others["FOLDER"] = torch.zeros(2, 2, dtype=torch.float64)
    watched = MetricsOnly(ExactKl("forward", "FOLDER"), "golden")
    loss, metrics = watched(output, batch)
    assert loss.tolist() == [0.0, 0.0] and not loss.requires_grad
    assert metrics == pytest.approx({"golden/forward_kl": log(2) - log(3) / 2})
    assert Objective((watched,)).needs == {Logits("FOLDER")}
    with pytest.raises(ConfigurationError, match="needs a name"):
        MetricsOnly(ExactKl(), "")


def test_a_run_reports_both_distances_and_invalid_answers_are_refused(tmp_path: Path) -> None:
    model, other, third = (
        save_pocket_like(tmp_path / name, seed=seed) for name, seed in zip("abc", range(3), strict=True)
    )
    sizes = {"model": str(model), "steps": 2, "groups_per_step": 2, "max_tokens": 6, "heldout_tasks": 1, "tasks": 2}
    made = {"teacher": str(other), "oracle": str(third)}
    run = build(recipe_named("teacher_hacking"), {**sizes, **made})
    launch(run, tmp_path, "run")
    found = json.loads((tmp_path / "run" / "hacking.json").read_text())
    assert found["is_hacked"] is False and found["proxy"] > 0 and found["golden"] > 0
    words = save_folder(tmp_path / "words")
    for name in made:
        with pytest.raises(ModelError, match=r"has another vocabulary than .* entries differ, need 0"):
            check(build(recipe_named("teacher_hacking"), {**sizes, **made, name: str(words)}))
    with pytest.raises(ConfigurationError, match="no answers='old'"):
        build(recipe_named("teacher_hacking"), {**made, "answers": "old"})
