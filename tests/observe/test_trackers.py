"""Trackers: what is missing is named; what is there gets every metric."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from strop.errors import ConfigurationError
from strop.observe.trackers.experiment_logs import MLflow, SwanLab
from strop.observe.trackers.tensorboard import TensorBoard
from strop.observe.trackers.trackio import Trackio
from strop.observe.trackers.wandb import Wandb
from strop.roles import Tracker


@pytest.mark.parametrize(
    ("tracker", "package", "extra"),
    [
        (TensorBoard(), "torch.utils.tensorboard", "strop[tensorboard]"),
        (Wandb(), "wandb", "strop[wandb]"),
        (Trackio(), "trackio", "strop[trackio]"),
        (MLflow(), "mlflow", "strop[mlflow]"),
        (SwanLab(), "swanlab", "strop[swanlab]"),
    ],
)
def test_a_missing_package_is_named(
    tracker: Tracker, package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError) as caught:
        tracker.open(tmp_path, {})
    assert extra in str(caught.value)


@pytest.mark.parametrize(
    "tracker", [TensorBoard("logs"), Wandb("mine", "offline"), Trackio("mine"), MLflow("mine"), SwanLab("mine")]
)
def test_trackers_are_plain_values(tracker: Tracker) -> None:
    assert eval(repr(tracker)) == tracker == pickle.loads(pickle.dumps(tracker))


def test_tensorboard_gets_every_metric(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracker = TensorBoard()
    tracker.open(tmp_path, {"recipe": "grpo"})
    tracker.stepped(0, {"heldout": 0.25}, {})
    tracker.stepped(3, {"reward": 0.5}, {"seconds": 2.0})
    tracker.end()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}
    assert found == {"heldout": [(0, 0.25)], "reward": [(3, 0.5)], "timing/seconds": [(3, 2.0)]}


def test_wandb_does_what_its_episode_says_and_a_missing_key_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    named = {"WANDB_MODE": "offline", "WANDB_PROJECT": "sums", "WANDB_ENTITY": "us", "WANDB_NAME": "third try"}
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    tracker = Wandb()
    tracker.open(tmp_path, {})
    assert (tracker._run.project, tracker._run.entity, tracker._run.name) == ("sums", "us", "third try")
    tracker.end()
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    # it reads its episode once, so another process asks without it
    code = (
        f"from pathlib import Path; from {Wandb.__module__} import Wandb; Wandb().open(Path({str(tmp_path)!r}), {{}})"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    told = subprocess.run(
        [sys.executable, "-c", code], env=plain | {"HOME": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert "ConfigurationError: Weights & Biases: No API key" in told.stderr and "WANDB_MODE=offline" in told.stderr


def test_wandb_writes_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    tracker = Wandb(mode="offline")
    tracker.open(tmp_path, {"recipe": "grpo"})
    assert (tracker._run.project, tracker._run.name) == ("strop", tmp_path.name)
    tracker.stepped(1, {"reward": 0.5}, {"seconds": 2.0})
    tracker.end()
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_mlflow_gets_every_metric_and_a_resumed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/mlruns")
    for step in (1, 2):
        tracker = MLflow()
        tracker.open(tmp_path / "first", {"recipe": "grpo"})
        tracker.stepped(step, {"reward": step / 4}, {"seconds": 2.0})
        tracker.end()
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("strop").experiment_id])
    assert [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, "reward")] == [
        (1, 0.25),
        (2, 0.5),
    ]
    assert run.data.params == {"recipe": "grpo"} and run.data.metrics["timing/seconds"] == 2.0


def test_swanlab_writes_where_the_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("swanlab")
    monkeypatch.setenv("SWANLAB_MODE", "offline")
    tracker = SwanLab()
    tracker.open(tmp_path, {"recipe": "grpo"})
    tracker.stepped(1, {"reward": 0.5}, {"seconds": 2.0})
    tracker.end()
    assert any((tmp_path / "swanlab").rglob("*"))
