"""Experiments (strop.effects): verdicts, results that are kept, and whole ones of a tiny model, killed and resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from strop.capabilities import OnDevice, inside
from strop.cli.commands.effect import run_effect, setting_of
from strop.control.samplers.permuted_control import Permuted
from strop.control.samplers.uniform import Uniform
from strop.effects import (
    ARMS,
    Experiment,
    Plan,
    as_markdown,
    find_experiment,
    judge,
    load_experiment,
    run_experiment,
    run_of,
    verdict,
    write_result,
)
from strop.errors import ConfigurationError
from strop.observe.metrics.tokens_to_target import mean_curve, share_of_tokens
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.stats.intervals import Difference
from tests.tiny_models import save_pocket_like

EFFECTS = Path(__file__).parent.parent / "effects"


def arm(setting: Setting) -> Run:
    return grpo(setting)


EXPERIMENT = Experiment("alpha", "It helps.", arm, arm, arm, tokens=1000)


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


def rows(*values: float) -> list[dict[str, Any]]:
    """Each on a straight line from 0 to its value at 1000 tokens."""
    return [
        {"seed": seed, "heldout_after": value, "heldout_area": value / 2, "heldout_curve": [[0, 1000], [0.0, value]]}
        for seed, value in enumerate(values)
    ]


def a_result(*seeds: int, tokens: int = 1000) -> dict[str, Any]:
    metrics = {"treatment": rows(0.6, 0.7, 0.8), "control": rows(0.5, 0.6, 0.7), "negative": rows(0.2, 0.3, 0.4)}
    return judge(replace(EXPERIMENT, tokens=tokens), {name: found[: len(seeds)] for name, found in metrics.items()})


def test_a_result_on_disk(tmp_path: Path) -> None:
    result = a_result(0, 1)
    assert result["verdict"] == "holds" and result["seeds"] == [0, 1]
    assert result["means"] == pytest.approx({"treatment": 0.65, "control": 0.55, "negative": 0.25})
    assert result["area"]["against_control"]["difference"] == pytest.approx(0.05)
    assert result["tokens_to_end_of_control"] == {"treatment": pytest.approx(0.55 / 0.65), "negative": None}
    path = write_result(tmp_path, result)
    assert path == tmp_path / "alpha.json"
    assert json.loads(path.read_text()) == result
    assert "treatment 0.85, negative never gets there" in path.with_suffix(".md").read_text()
    assert "| 1 | 0.700 | 0.600 | 0.300 |" in path.with_suffix(".md").read_text()


def test_tokens_to_the_target_are_told_where_there_is_one() -> None:
    """Of four runs, more than half are there only with the third, at 90."""
    arms = {name: rows(0.5, 0.5, 0.5, 0.5) for name in ARMS}
    assert "Tokens until" not in as_markdown(judge(EXPERIMENT, arms))
    for name, reached in zip(ARMS, ((70, 90, None, 50), (None, None, 10, None), (5, 6, 7, 8000)), strict=True):
        for row, tokens in zip(arms[name], reached, strict=True):
            row.update(target=0.4, tokens_to_target=tokens)
    told = as_markdown(judge(EXPERIMENT, arms)).splitlines()[-1]
    assert told == "Tokens until more than half of the runs were at 0.4: treatment 90, control never, negative 7."


def test_the_mean_of_curves_goes_as_far_as_all_of_them() -> None:
    """At 50 the first is half way between 0 and 0.4; the second ends at 150, where the first is at 0.7."""
    found = mean_curve([([0, 100, 200], [0.0, 0.4, 1.0]), ([0, 50, 150], [0.2, 0.4, 0.5])])
    assert found[0] == [0, 50, 100, 150]
    assert found[1] == pytest.approx([0.1, 0.3, (0.4 + 0.45) / 2, (0.7 + 0.5) / 2])
    assert share_of_tokens(found, ([0, 300], [0.0, 0.3])) == pytest.approx(50 / 300)


def test_the_area_may_be_the_metric() -> None:
    metrics = {name: rows(*values) for name, values in zip(ARMS, ((0.6, 0.7), (0.5, 0.6), (0.2, 0.3)), strict=True)}
    assert judge(replace(EXPERIMENT, metric="heldout_area"), metrics)["difference"] == pytest.approx(0.05)


@pytest.mark.parametrize("cheaper", [a_result(0, 1), a_result(0, 1, 2, tokens=999)])
def test_a_result_that_cost_more_is_replaced_only_when_told(tmp_path: Path, cheaper: dict[str, Any]) -> None:
    path = write_result(tmp_path, a_result(0, 1, 2))
    assert path is not None
    before = path.read_bytes(), path.with_suffix(".md").read_bytes()
    assert write_result(tmp_path, cheaper) is None
    assert (path.read_bytes(), path.with_suffix(".md").read_bytes()) == before
    assert write_result(tmp_path, a_result(0, 1, 2, tokens=1001)) == path
    assert write_result(tmp_path, cheaper, overwrite=True) == path
    assert json.loads(path.read_text()) == cheaper


def test_experiments_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_experiment("poise") == EFFECTS / "poise.py"
    assert find_experiment(str(EFFECTS / "nft.py")) == EFFECTS / "nft.py"
    mine = tmp_path / "effects" / "poise.py"
    mine.parent.mkdir()
    mine.write_text("")
    assert find_experiment("poise") == mine


def test_fields_of_the_setting_that_all_arms_begin_with() -> None:
    assert setting_of(["device=cuda", "threads=2"]) == Setting(device="cuda", threads=2)
    for word in ("devise=cuda", "seed=3", "device"):
        with pytest.raises(ConfigurationError, match="a setting has no field"):
            setting_of([word])


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 2 seeds, got 1"):
        Plan(EXPERIMENT, 1, Setting(), tmp_path)
    with pytest.raises(ConfigurationError, match="did you mean expert-iteration"):
        find_experiment("expert-iterations")
    with pytest.raises(ConfigurationError, match=r"no experiment file .*gamma\.py"):
        find_experiment(str(tmp_path / "gamma.py"))
    (tmp_path / "beta.py").write_text("x = 1\n")
    with pytest.raises(ConfigurationError, match="defines no `experiment`"):
        load_experiment(find_experiment("beta", tmp_path))
    with pytest.raises(ConfigurationError, match="tokens >= 1, got 0"):
        replace(EXPERIMENT, tokens=0)
    with pytest.raises(ConfigurationError, match="there is no device 'cuba'"):
        run_experiment(Plan(EXPERIMENT, 2, Setting(device="cuba"), tmp_path))


def test_who_remembers_tasks_is_compared_among_the_same_few() -> None:
    experiment = load_experiment(EFFECTS / "haystack-vade.py")
    treatment, control = (getattr(experiment, name)(Setting(seed=2)) for name in ("treatment", "control"))
    assert treatment.envs == control.envs and [env.num_tasks() for env in control.envs] == [48] * 5
    # sums of one digit repeat themselves
    drawn = [control.sampler.next(0, control.estimator).id for _ in range(481)]
    assert 200 < len(set(drawn)) <= 240 and drawn[0] == drawn[240] == drawn[480]
    assert treatment.sampler.next(0, treatment.estimator).id in drawn


def test_curricula_differ_in_what_chooses_alone() -> None:
    """One learner, one set of tasks, accuracy of the target; the negative control is the treatment, permuted."""
    experiment = load_experiment(EFFECTS / "broken-keys-pcl.py")
    treatment, control, negative = (getattr(experiment, name)(Setting(seed=2)) for name in ARMS)
    assert experiment.metric == "heldout_area" and isinstance(control.sampler, Uniform)
    assert isinstance(negative.sampler, Permuted) and negative.sampler.inner == treatment.sampler
    assert negative.sampler.tasks == negative.envs[0].num_tasks() == 256
    for run in (treatment, negative):
        assert (
            run.envs == control.envs == run.sampler.envs and run.estimator == treatment.estimator != control.estimator
        )
        assert (run.losses, run.budget, run.groups_per_step) == (control.losses, control.budget, 8)
    (target,) = control.evaluation.measured(control.envs)
    assert (target.name, target.level, target.num_tasks()) == ("countdown", 4, None)


# a teacher, a pool, a judge, peers, two teachers, a model that fills masks
_TRAINS_FIRST = {
    EFFECTS / f"{key}.py" for key in ("kdrl", "rlep", "par", "sapo", "teacher-forcing-rewards", "d1", "tracerl")
}


@pytest.mark.parametrize("path", sorted(set(EFFECTS.glob("*.py")) - {EFFECTS / "lag_sweep.py"} - _TRAINS_FIRST))
def test_arms_keep_the_seed_and_device_they_are_given(path: Path) -> None:
    """On a GPU, too, all three arms compute there."""
    setting = Setting(seed=3, device="cuda")
    runs = [run_of(path, name, setting, 77) for name in ARMS]
    assert [run.seed for run in runs] == [3, 3, 3]
    assert len({run.envs for run in runs}) == 1
    for run in runs:
        places = [{part.device for part in inside(machine, OnDevice)} for machine in (run.engine, run.trainer)]
        assert places == [{"cuda"}] * 2
    assert all(run.max_generated_tokens == 77 for run in runs)


_TINY = """
from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.classics.grpo import grpo


def tiny(setting):
    sizes = {{"groups_per_step": 2, "group_size": 2, "max_tokens": 6, "heldout_tasks": 2, "heldout_every": 1}}
    return grpo(replace(setting, env="arithmetic:1", model={model!r}, checkpoint_every=2, **sizes))


experiment = Experiment("alpha", "It helps.", tiny, tiny, {negative}, tokens={tokens})
"""


def tiny_experiment(folder: Path, tokens: int = 60, negative: str = "tiny") -> Path:
    model = str(save_pocket_like(folder / "model"))
    path = folder / "alpha.py"
    path.write_text(_TINY.format(model=model, tokens=tokens, negative=negative))
    return path


def test_a_whole_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every run ends with the first step that reaches the budget, and the result says what it depends on."""
    plan = Plan(load_experiment(tiny_experiment(tmp_path)), 2, Setting(), tmp_path / "runs")
    looks: list[int] = []
    result = run_experiment(plan, 2, lambda: looks.append(1))
    assert looks and [len(found) for found in result["arms"].values()] == [2, 2, 2]
    spent = [row["tokens_generated"] for found in result["arms"].values() for row in found]
    assert all(60 <= tokens < 60 + 2 * 2 * 6 for tokens in spent)
    assert result["difference"] == 0.0 and result["verdict"] == "does not hold"  # three times the same run
    assert result["hardware"]["cores"] == os.cpu_count() and result["versions"]["torch"] == torch.__version__
    assert result["setting"] == {} and result["processes"] == 2 and len(result["code"]) == 12 and result["commit"]

    kept = write_result(tmp_path / "results", {**result, "tokens": 61})  # somebody spent more on it
    assert kept is not None
    words: tuple[Any, ...] = (str(plan.experiment.path), [], 2, 0, None, plan.runs, 2)
    run_effect(*words, False)  # all runs are there: nothing is run again
    assert "--overwrite replaces it" in capsys.readouterr().out
    assert json.loads(kept.read_text())["tokens"] == 61
    assert json.loads((plan.root / "alpha.json").read_text())["means"] == result["means"]
    run_effect(*words, True)
    assert json.loads(kept.read_text())["tokens"] == 60


def test_an_arm_of_another_seed_is_refused(tmp_path: Path) -> None:
    path = tiny_experiment(tmp_path, negative="lambda setting: tiny(replace(setting, seed=9))")
    with pytest.raises(ConfigurationError, match=r"runs with seed 9 on cpu, and was asked for seed 1 on cpu"):
        run_of(path, "negative", Setting(seed=1), 60)


def finished(runs: Path) -> dict[Path, int]:
    """Those whose summary is as it stays: findings come into it last."""
    written = runs.glob("alpha-*/*/summary.json")
    return {path: path.stat().st_mtime_ns for path in written if "findings" in json.loads(path.read_text())}


def bits(runs: Path) -> dict[str, bytes]:
    """What does not depend on the wall clock, of every run."""
    return {path.parent.name: path.read_bytes() for path in runs.glob("alpha-*/*/metrics.jsonl")}


@pytest.mark.long
def test_killed_in_the_middle_and_begun_again_it_is_the_same_result(tmp_path: Path) -> None:
    """kill -9 of the command: its runs end with it, finished ones stay, others go on, and all bits are the same."""
    path = tiny_experiment(tmp_path, tokens=200)
    whole, plan = (Plan(load_experiment(path), 2, Setting(), tmp_path / name) for name in ("whole", "runs"))
    expected = run_experiment(whole, 2)
    words = ["effect", str(path), "--seeds", "2", "--jobs", "2", "--runs", str(plan.runs)]
    killed = subprocess.Popen([sys.executable, "-m", "strop", *words], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while not finished(plan.runs):
        assert killed.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    done = finished(plan.runs)
    assert 1 <= len(done) < 6
    again = run_experiment(plan, 2)
    assert done.items() <= finished(plan.runs).items(), "a finished run was run again"
    assert len(bits(whole.runs)) == 6 and bits(plan.runs) == bits(whole.runs)
    assert again["means"] == expected["means"] and again["area"] == expected["area"]
