"""Benchmarks at toy sizes: they run on a CPU, count what they say they count, and keep what they measured."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.judging.preferences import Preferences, asked_of, completions_of
from strop.generate.reward_model import RewardModel
from strop.kernels.cpu.build import library
from tests.building import make_group
from tests.tiny_models import save_pocket_like

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> ModuleType:
    """A script as a module; its results go elsewhere."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(importlib.import_module("machine"), "RESULTS", tmp_path)
    yield importlib.import_module(request.param)  # type: ignore[misc]
    for name in (
        "machine",
        "shapes",
        "steps_on_a_cpu",
        "mismatch",
        "training",
        "adapters",
        "turns",
        "workload",
        request.param,
    ):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("benchmark", ["generation"], indirect=True)
def test_generation_counts_every_token(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--models", "tiny", "--sequences", "6", "--tokens", "5", "--prompt-tokens", "4", "--group-size", "2"]
    words += ["--peers", "transformers", "plain", *(["parts"] if library("step") else [])]
    benchmark.main([*words, "--rounds", "1", "--device", "cpu", "--json", "--save", "here"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown == json.loads((tmp_path / "here.json").read_text())
    (row,) = shown["rows"]
    count = {side: of["tokens_per_second"] * of["seconds"] for side, of in row["sides"].items()}
    assert count["transformers"] == pytest.approx(30)
    assert 20 <= count["strop"] <= 30.001  # one token in 107 is the end; those of real sizes have 150,000
    assert count["strop"] == pytest.approx(count["plain"]) == pytest.approx(count.get("parts", count["plain"]))
    assert row["outside"] is None or 0 < row["outside"] < 1
    assert shown["ratio"] == row["ratio"] > 0 and shown["versions"]["torch"] == torch.__version__
    weights, per_token = 2 * _tiny_parameters(), 4 * 2 * 2 * 16  # bytes: 2 layers, 2 heads of 16
    assert row["floor"] == pytest.approx(6 / ((weights + 6 * 6.5 * per_token) / shown["bytes_per_second"]))


def _tiny_parameters() -> int:
    attention = 64 * 64 + 64 + 2 * (64 * 32 + 32) + 64 * 64  # Qwen2 has biases on queries, keys and values
    return 107 * 64 + 2 * (attention + 3 * 64 * 128 + 2 * 64) + 64


@pytest.mark.parametrize("benchmark", ["mismatch"], indirect=True)
def test_engine_and_trainer_agree_in_float32(benchmark: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(
        ["--model", "tiny", "--prompts", "3", "--group-size", "2", "--tokens", "6", "--device", "cpu", "--json"]
    )
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown["tokens"] == 36 and shown["mean_absolute_difference"] < 1e-5
    assert shown["share_outside"] == 0.0 and shown["is_reached"] and shown["ratio"] > 100


@pytest.mark.parametrize("benchmark", ["whole"], indirect=True)
def test_whole_weights_in_few_bytes_agree_with_their_engine(
    benchmark: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", "tiny", "--check", "tiny", "--held", "6", "--rollouts", "2", "--tokens", "8", "--length", "8"]
    benchmark.main([*words, "--sequences", "2", "--steps", "1", "--device", "cpu", "--json"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown["bytes_per_weight"] == 6 and shown["mean_absolute_difference"] < 1e-5 and shown["ratio"] > 0
    assert shown["gradient_error"] < 0.05 and shown["gradient_error_18"] < 1e-4  # both compute in float32 here


@pytest.mark.parametrize("benchmark", ["drafts"], indirect=True)
def test_a_draft_changes_no_token_and_is_counted(benchmark: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--model", "tiny", "--before", "6", "--sequences", "3", "--tokens", "12", "--rounds", "2"]
    benchmark.main([*words, "--guesses", "1", "3", "--device", "cpu", "--json"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown["completions"] == 9 and [each["guesses"] for each in shown["drafts"]] == [1, 3]
    for each in shown["drafts"]:
        assert each["same"] == 9 and 1 <= each["tokens_per_look"] <= each["guesses"] + 1
        assert each["tokens_per_second"] == pytest.approx(sum(each["rates"][1:]) / 2, rel=0.01)
    assert shown["ratio"] == max(each["ratio"] for each in shown["drafts"])


@pytest.mark.parametrize("benchmark", ["against_trl"], indirect=True)
def test_repetitions_are_told_beside_their_mean(benchmark: ModuleType) -> None:
    first, second = ({"ratio": each, "sides": each, "two_processes": {"ratio": 2 * each}} for each in (2.0, 3.0))
    found = benchmark.combined([first, second])
    assert (found["ratio"], found["ratio_by_repetition"], found["sides"]) == (2.5, [2.0, 3.0], 3.0)
    assert found["two_processes"] == {"ratio": 5.0, "by_repetition": [4.0, 6.0]}


@pytest.mark.parametrize("base", ["plain", "nf4"])
@pytest.mark.parametrize("benchmark", ["adapters"], indirect=True)
def test_adapters_agree_and_are_delivered(benchmark: ModuleType, base: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--model", "tiny", "--rank", "4", "--rollouts", "2", "--tokens", "8", "--length", "8", "--steps", "1"]
    benchmark.main([*words, "--base", base, "--device", "cpu", "--json"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown["tokens"] == 16 and shown["mean_absolute_difference"] < 1e-5
    assert all(shown[name] > 0 for name in ("tokens_per_second", "frugal_tokens_per_second", "delivery_ms"))


@pytest.mark.parametrize("benchmark", ["end_to_end"], indirect=True)
def test_heavy_tailed_completions_have_the_law_they_were_given(benchmark: ModuleType, tmp_path: Path) -> None:
    """P(longer than n) = shortest / n, cut at the longest; both sides of a comparison end in metrics."""
    shapes = importlib.import_module("shapes")
    folder = shapes.heavy_tailed("tiny", tmp_path / "model", 4, 64)
    sizes = {"groups": 12, "group-size": 8, "steps": 2, "warm": 1, "longest": 64, "lag": 1}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    arguments = benchmark._arguments([*words, "--model", "tiny", "--device", "cpu"])
    for side in ("sync", "async"):
        found = benchmark.one(side, folder, arguments)
        assert found["samples_per_second"] > 0 and len(found["seconds_per_step"]) == 2
        assert 6 <= found["length"]["median"] <= 12 and 32 <= found["length"]["longest"] <= 64


@pytest.mark.parametrize("benchmark", ["step_parts"], indirect=True)
def test_every_second_of_a_step_belongs_to_one_part(benchmark: ModuleType) -> None:
    """A clock that moves only when somebody works: what a part calls, or waits for, is not its own."""
    now = [0.0]
    clock = benchmark.Clock(lambda: now[0])

    def work(seconds: float) -> None:
        now[0] += seconds

    inner = clock.wrapped("inner", work)

    def outer() -> None:
        work(2)
        inner(3)
        work(5)

    async def turns(other: asyncio.Event, mine: asyncio.Event) -> str:
        work(7)
        mine.set()
        await other.wait()
        inner(11)
        with pytest.raises(ZeroDivisionError):
            await _broken()
        return "done"

    async def both() -> list[str]:
        one, two = asyncio.Event(), asyncio.Event()
        first, second = clock.wrapped("first", turns), clock.wrapped("second", turns)
        return list(await asyncio.gather(first(one, two), second(two, one)))

    clock.wrapped("outer", outer)()
    assert clock.seconds == {"outer": 7, "inner": 3}
    assert asyncio.run(both()) == ["done", "done"]
    assert clock.seconds == {"outer": 7, "inner": 25, "first": 7, "second": 7}
    with clock.within("evaluation"):
        inner(13)
        work(17)
    assert clock.seconds["evaluation"] == 30 and clock.seconds["inner"] == 25
    assert clock.calls == {"outer": 1, "inner": 3, "first": 1, "second": 1, "evaluation": 1}


async def _broken() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


@pytest.mark.parametrize("benchmark", ["testbed"], indirect=True)
def test_the_test_bed_is_measured_by_part(benchmark: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["--only", "step", "--steps", "4", "--device", "cpu", "--json"])
    step = json.loads(capsys.readouterr().out.splitlines()[-1])["step"]
    parts = step["parts"]
    assert {"generation", "training", "rollouts (host)", "scoring", "ledger", "packing", "publish and proof"} <= set(
        parts
    )
    rest = step["event loop, and waiting for the device"]
    assert sum(parts.values()) + rest == pytest.approx(step["milliseconds"]) and 0 <= rest < step["milliseconds"] / 2
    assert step["one evaluation"] > 0 and step["one checkpoint"] > 0


@pytest.mark.parametrize("benchmark", ["curricula"], indirect=True)
def test_curricula_are_measured_beside_their_controls(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--only", "sec", "--env", "haystack", "--seeds", "2"]
    benchmark.main([*words, "--device", "cpu", "--json", "--save", "here"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown == json.loads((tmp_path / "here.json").read_text())
    rows = shown["scenarios"]["haystack"]
    assert {"uniform", "sec", "sec, permuted", "oracle p(1-p)", "uniform, refilled"} <= set(rows)
    assert shown["ratio"] == rows["sec"]["mean"] < 0.35 and shown["held"] == {"haystack": True}
    assert rows["oracle p(1-p)"]["mean"] < rows["sec"]["mean"] < rows["sec, permuted"]["mean"]


@pytest.mark.parametrize("benchmark", ["pick"], indirect=True)
def test_a_pick_is_measured_over_as_many_tasks_as_it_says(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark.main(["--tasks", "3000", "--picks", "5", "--json", "--save", "here"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown == json.loads((tmp_path / "here.json").read_text())
    assert shown["tasks"] == 3000 and shown["bytes_per_task"] == pytest.approx(8192 * 20 / 3000)  # 8192 slots
    assert shown["ratio"] == pytest.approx(shown["seconds"]["pick"]["median"] / 1e-3) and shown["ratio"] > 0
    assert shown["peak_bytes"] >= shown["peak_before_bytes"] > 10**6


@pytest.mark.parametrize("benchmark", ["prediction"], indirect=True)
def test_estimators_are_compared_with_the_truth(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios, ranks and the learner by hand, on few steps."""
    monkeypatch.setattr(benchmark, "STEPS", 40)
    found = benchmark.measure(1)
    errors = {(row["env"], row["delay"], row["estimator"]): row["rmse"] for row in found["rows"]}
    ratios = [
        errors[env, delay, "offsets"] / errors[env, delay, "last seen"]
        for env, delay in {(row["env"], row["delay"]) for row in found["rows"]}
    ]
    assert found["ratio"] == max(ratios) and len(found["rows"]) == 3 * 2 * 4
    assert benchmark.rank_correlation(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.1, 0.3, 0.3, 0.9])) == pytest.approx(
        1
    )
    assert benchmark.rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])) == pytest.approx(-0.5)
    assert benchmark.rank_correlation(np.ones(3), np.arange(3.0)) == 0.0
    learner = benchmark.Learner(np.array([0, 1]), np.array([0.0, benchmark.IMPOSSIBLE]), np.array([0.0, 0.0]))
    learner.learn(np.array([0, 1]))  # p(1 - p) = 1/4 at its own kind, a third of it at the next
    assert learner.skills == pytest.approx([benchmark.RATE / 4, benchmark.RATE / 12])
    assert learner.probabilities[1] < 1e-12


@pytest.mark.parametrize("benchmark", ["pruning_head"], indirect=True)
def test_what_a_head_foretells_is_compared_with_what_came(benchmark: ModuleType) -> None:
    """Right ones were predicted .9 and .4, wrong ones .4 and .1: of four pairs three and a half are in order."""
    groups = [make_group([1.0, 0.0, 0.0], pruned=[2]), make_group([0.0, 1.0])]
    for group, probabilities in zip(groups, ((0.9, 0.4, 1.0), (0.1, 0.4)), strict=True):
        for rollout, probability in zip(group.rollouts, probabilities, strict=True):
            rollout.facts["predicted"] = probability
    assert benchmark.auc(groups) == pytest.approx(3.5 / 4) and benchmark.within(groups) == 1.0
    assert np.isnan(benchmark.auc([make_group([])])) and np.isnan(benchmark.within([]))
    found = benchmark.measure(1, versions=2, learned=1, groups=2, rollouts=2)
    assert [row["share"] for row in found["rows"]] == [eighth / 8 for eighth in range(1, 9)]
    assert "| 0.500 |" in benchmark.table(found)


@pytest.mark.parametrize("benchmark", ["prediction_pocket"], indirect=True)
def test_estimators_are_shown_the_groups_of_a_run_as_they_came(benchmark: ModuleType) -> None:
    """Squared errors .25 and .0625; one task was solved last and one was not."""
    assert benchmark.metrics(np.array([0.5, 0.25]), np.array([1.0, 0.0])) == pytest.approx([0.15625, 0.15625, 1.0])
    assert benchmark.metrics(np.array([0.5]), np.array([0.25]))[1] == pytest.approx(0.0625 + 0.1875)
    tasks = [Arithmetic(4).task(index) for index in range(2)]
    groups = [
        replace(make_group(rewards), number=number, task=tasks[number % 2], version=number)
        for number, rewards in enumerate(([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]))
    ]
    found = benchmark.predicted(groups, tasks, 4)
    assert found["last seen"].tolist() == [1.0, 0.0] and found["global mean"].tolist() == [0.5, 0.5]
    assert found["offsets"][0] > 0.5 > found["offsets"][1]
    run = benchmark.run_of(seed=1, tasks=2, visits=3)
    assert (run.steps, run.sampler.count, len(run.envs)) == (3, 2, 6)  # 36 groups in draws of 16
    told = {name: np.array([1.0 if name == "last seen" else 0.25, 0.3, 0.5]) for name in benchmark.ESTIMATORS}
    shown = benchmark.summed([(told, np.arange(12) / 12)])
    assert shown["ratio"] == 0.5 and shown["shares"]["arithmetic:4"] == pytest.approx((2 + 3) / 24)


@pytest.mark.parametrize("benchmark", ["reward_model"], indirect=True)
def test_a_reward_model_is_measured_on_pairs_held_out(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(save_pocket_like(tmp_path / "model"))
    benchmark.main(["--folder", folder, "--heldout", "2", "--device", "cpu", "--json", "--save", "here"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown == json.loads((tmp_path / "here.json").read_text())
    assert [row["axiom"] for row in shown["rows"]] == ["useful", "relevant", "grounded", "evidence", "merged"]
    assert shown["ratio"] == shown["rows"][0]["after"] in (0.0, 0.5, 1.0)
    env = Preferences(Arithmetic(2), (("useful", 1.0),))
    pairs = [env.task(index, heldout=True) for index in range(2)]
    judge = RewardModel(folder)
    better, worse = (
        [judge.scores([(asked_of(pair), completions_of(pair)[side])])[0] for pair in pairs] for side in (0, 1)
    )
    assert shown["ratio"] == sum(one > other for one, other in zip(better, worse, strict=True)) / 2
    assert "| useful |" in benchmark.table(shown)


@pytest.mark.parametrize("benchmark", ["endpoint"], indirect=True)
def test_the_endpoint_is_asked_for_every_turn_and_breaks_none(benchmark: ModuleType) -> None:
    pytest.importorskip("uvicorn")
    measured = asyncio.run(benchmark.measure(3, 4))
    assert measured["breaks"] == 0 and measured["ratio"] == pytest.approx(2.0 / measured["milliseconds"])
    assert measured["share_of_a_core"] == pytest.approx(measured["milliseconds"] / 1000 * 3 / 10)


@pytest.mark.parametrize("benchmark", ["on_one_gpu"], indirect=True)
def test_measurements_within_a_time(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each keeps what it says; one that fails, takes too long or does not fit leaves the others alone."""
    words = {
        "good": (5, "print('noise'); print('{\"ratio\": 1.5, \"is_reached\": true}')"),
        "bad": (5, "raise SystemExit('no such thing')"),
        "slow": (1, "import time; time.sleep(60)"),
        "late": (900, "print('{}')"),
        "other": (5, "print('3 passed')"),
    }
    made = {name: benchmark.Measurement(seconds, ("-c", program)) for name, (seconds, program) in words.items()}
    monkeypatch.setattr(benchmark, "MEASUREMENTS", made)
    for time in ("first", "second"):
        benchmark.measure_all(list(made), tmp_path / "to", 60)
        said = capsys.readouterr().out
        assert ("good: done" if time == "first" else "good: there already") in said
        assert "bad: failed with 1: no such thing" in said and "slow: ended after 2 s" in said
        assert "late: not begun" in said
    assert sorted(path.stem for path in (tmp_path / "to").glob("*.json")) == ["good", "other"]
    assert "| good | 1.500 | True |" in benchmark.table(tmp_path / "to")


@pytest.mark.parametrize("benchmark", ["on_one_gpu"], indirect=True)
def test_every_measurement_is_a_command_that_is_understood(benchmark: ModuleType) -> None:
    """Its script has all of the options that it is given."""
    for each in benchmark.MEASUREMENTS.values():
        if each.words[0].endswith(".py"):
            source = (FOLDER / each.words[0]).read_text() + (FOLDER / "machine.py").read_text()
            assert all(f'"{word}"' in source for word in each.words if word.startswith("--")), each


_ELSEWHERE = {  # what a script needs that this environment may not have
    "end_to_end_trl": "datasets",
    "trl_side": "trl",
    "kernel_resources": "triton",
}


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_every_script_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in _ELSEWHERE:
        pytest.importorskip(_ELSEWHERE[name])
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    importlib.import_module(name)
    for each in set(sys.modules) - before:
        if (FOLDER / f"{each}.py").is_file():
            del sys.modules[each]


@pytest.mark.parametrize("benchmark", ["virtual_cluster"], indirect=True)
def test_the_cluster_on_a_virtual_clock_runs(benchmark: ModuleType) -> None:
    found = benchmark.simulate(lag=1, steps=2, engines=64, trainers=16)
    assert found["seconds_per_step"] > 0 and 0 <= found["rows_idle_share"] < 1


@pytest.mark.parametrize("benchmark", ["ledger_share"], indirect=True)
def test_the_ledger_is_timed_by_call(benchmark: ModuleType) -> None:
    found = benchmark.measure(steps=1)
    assert found["ratio"] > 0 and "1 steps" in benchmark.table(found)
