"""Where an engine computes changes nothing but the time it takes."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from strop.cli import app
from strop.control.admission.bounded_lag import BoundedLag
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.load_balanced import Several
from strop.launch.running.launch import launch
from strop.placement.place import place
from strop.placement.process_engine import LocalProcess
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.storage.run_source import from_source, to_source
from strop.weights.channels.memory import Memory
from strop.weights.channels.shared_memory import SharedMemory
from strop.weights.fingerprint import fingerprint
from tests.parts import EvenLength, LongerIsBetter

STEPS = 3


def make_run(model: Path, recipe: str = "dapo", **values: object) -> Run:
    small = {"groups_per_step": 4, "group_size": 4, "max_tokens": 12, "heldout_tasks": 4, "heldout_every": 2}
    run = build(recipe_named(recipe), {"model": str(model), "steps": STEPS, "learning_rate": 1e-3, **small, **values})
    run.rewards = (LongerIsBetter(), EvenLength())
    return run


def leftovers(path: Path) -> tuple[str, str, str]:
    """Weights with optimizer state, metrics and ledger, as names for their bits."""
    folder = RunFolder(path)
    last = checkpoint.listed(folder.checkpoints)[-1]
    tensors = {**load_file(last / "model.safetensors"), **load_file(last / "trainer.safetensors")}
    ledger = Ledger(folder.ledger, read_only=True)
    assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
    return fingerprint(tensors), folder.metrics.read_text(), ledger.digest()


def test_without_lag_another_process_gives_the_same_bits(model: Path, tmp_path: Path) -> None:
    values = {"env": "arithmetic:4+guess:1"}  # one turn and several, groups that are dropped and replaced
    launch(make_run(model, **values), tmp_path, "inline")
    launch(place(make_run(model, **values), "process"), tmp_path, "process")
    assert leftovers(tmp_path / "inline") == leftovers(tmp_path / "process")


def test_an_engine_killed_during_a_run_costs_time_and_nothing_else(model: Path, tmp_path: Path) -> None:
    run = place(replace(make_run(model, "grpo", steps=6), admission=BoundedLag(2)), "process", engines=2)
    assert isinstance(run.engine, Several)
    engines = [engine for engine in run.engine.engines if isinstance(engine, LocalProcess)]
    victim = engines[1]

    def kill_once_it_runs() -> None:
        while not victim.pid or len(read_rows(tmp_path / "run" / "metrics.jsonl")) < 3:
            time.sleep(0.02)
        os.kill(victim.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_once_it_runs, daemon=True)
    killer.start()
    summary = launch(run, tmp_path, "run")
    killer.join(5)
    assert summary["is_complete"] and summary["steps"] == 6
    assert (engines[0].num_lost, victim.num_lost) == (0, 1)
    leftovers(tmp_path / "run")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert max(row.get("lag_max", row.get("lag", 0.0)) for row in rows) <= 2


def test_a_placed_run_is_written_down_as_such(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(model)
    assert place(run, "inline") is run
    placed = place(run, "process", engines=4096)
    assert isinstance(placed.engine, Several) and len(placed.engine.engines) == 4096
    assert "1 threads of the trainer and 4096 engines with one each are more than the" in capsys.readouterr().err
    placed = place(run, "process")
    assert placed.engine == LocalProcess(TorchEngine(), in_step=True) and placed.channel == SharedMemory()
    assert isinstance(run.engine, TorchEngine) and isinstance(run.channel, Memory)
    assert place(replace(run, admission=BoundedLag(4)), "process").engine == LocalProcess(TorchEngine())
    (tmp_path / "recipe.py").write_text(to_source(placed, "A placed run."))
    assert from_source(tmp_path / "recipe.py", trust=True).engine == placed.engine


def test_what_cannot_be_placed_is_refused(model: Path, tmp_path: Path) -> None:
    run = make_run(model)
    with pytest.raises(ConfigurationError, match="did you mean process"):
        place(run, "proces")
    with pytest.raises(ConfigurationError, match="engines >= 1, got 0"):
        place(run, "process", 0)
    with pytest.raises(ConfigurationError, match="2 engines in one process"):
        place(run, "inline", 2)
    with pytest.raises(ConfigurationError, match="placed already"):
        place(place(run, "process"), "process")
    refused = CliRunner().invoke(app, ["train", "--resume", str(tmp_path), "--place", "process"])
    assert isinstance(refused.exception, ConfigurationError) and "--place process" in str(refused.exception)
    refused = CliRunner().invoke(app, ["train", "pocket", "--place", "elsewhere"])
    assert isinstance(refused.exception, ConfigurationError) and "elsewhere" in str(refused.exception)
