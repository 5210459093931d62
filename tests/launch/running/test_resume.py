"""Same seed, same bits; and killed at any moment and resumed, still the same bits, nothing lost, nothing twice."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from strop.errors import BusyError, CheckpointError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.weights.fingerprint import fingerprint
from tests.parts import EvenLength, LongerIsBetter

STEPS = 10
KILLS = 20


def make_run(model: Path, recipe: str = "grpo") -> Run:
    values = {
        "model": str(model),
        "steps": STEPS,
        "groups_per_step": 4,
        "group_size": 4,
        "max_tokens": 12,
        "heldout_tasks": 6,
        "heldout_every": 4,
        "checkpoint_every": 3,
        "learning_rate": 1e-3,
    }
    run = build(recipe_named(recipe), values)
    run.rewards = (LongerIsBetter(), EvenLength()) if recipe == "dapo" else (LongerIsBetter(),)
    return run


def leftovers(path: Path, steps: int = STEPS) -> tuple[str, str, str]:
    """Weights with optimizer state, metrics and ledger of a run, as names for their bits."""
    folder = RunFolder(path)
    last = checkpoint.listed(folder.checkpoints)[-1]
    assert last.name == f"step-{steps}"
    tensors = {**load_file(last / "model.safetensors"), **load_file(last / "trainer.safetensors")}
    ledger = Ledger(folder.ledger, read_only=True)
    assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
    return fingerprint(tensors), folder.metrics.read_text(), ledger.digest()


# children are forked from a server that has imported everything and run nothing: a fork of this process could inherit
# a lock that another of its threads holds
CONTEXT = multiprocessing.get_context("forkserver")


def begin(model: Path, path: Path) -> None:
    _hush()
    launch(make_run(model), path.parent, path.name)


def go_on(path: Path) -> None:
    _hush()
    relaunch(path)


def _hush() -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)


@pytest.mark.parametrize("recipe", ["grpo", "dapo", "ppo"])
def test_the_same_seed_twice_gives_the_same_bits(model: Path, tmp_path: Path, recipe: str) -> None:
    found = []
    for name in ("first", "second"):
        run = make_run(model, recipe)
        run.gates = (ZeroVariance(),) if recipe == "dapo" else ()
        launch(run, tmp_path, name)
        found.append(leftovers(tmp_path / name))
    assert found[0] == found[1]
    other = make_run(model, recipe)
    other.seed = 1
    launch(other, tmp_path, "other")
    assert leftovers(tmp_path / "other")[0] != found[0][0]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="kills forked processes")
def test_killed_at_random_moments_and_resumed_the_run_ends_with_the_same_bits(model: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    launch(make_run(model), tmp_path, "whole")
    duration = time.monotonic() - began
    expected = leftovers(tmp_path / "whole")
    CONTEXT.set_forkserver_preload(["tests.launch.running.test_resume"])
    moments = random.Random(0)
    kills = 0
    while kills < KILLS:
        path = tmp_path / f"killed-{kills}"
        child = CONTEXT.Process(target=begin, args=(model, path))
        child.start()
        while kills < KILLS:
            child.join(moments.uniform(0.05, 1.2) * duration)
            if not child.is_alive():
                break
            child.kill()
            child.join()
            kills += 1
            is_born = (path / "recipe.py").is_file() and "launch(run)" in (path / "recipe.py").read_text()
            child = CONTEXT.Process(target=go_on, args=(path,)) if is_born else None
            if child is None:
                break  # killed before the run existed: there is nothing to resume
            child.start()
        if child is not None:
            child.join(120)
            assert child.exitcode == 0
            assert leftovers(path) == expected


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_ends_with_the_same_bits(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch(make_run(model), tmp_path, "run")
    expected = leftovers(tmp_path / "run")
    newest = checkpoint.listed(tmp_path / "run" / "checkpoints")[-1] / "model.safetensors"
    data = bytearray(newest.read_bytes())
    data[-7] ^= 4
    newest.write_bytes(data)
    relaunch(tmp_path / "run")
    assert "model.safetensors is not what was written; going back to step-9" in capsys.readouterr().err
    assert leftovers(tmp_path / "run") == expected


def test_no_whole_checkpoint_is_a_clear_error(model: Path, tmp_path: Path) -> None:
    launch(make_run(model), tmp_path, "run")
    for path in checkpoint.listed(tmp_path / "run" / "checkpoints"):
        (path / "trainer.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"trainer\.safetensors is not what was written"):
        relaunch(tmp_path / "run")


def test_a_folder_in_use_is_refused(model: Path, tmp_path: Path) -> None:
    launch(make_run(model), tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    with pytest.raises(BusyError, match=f"in use by process {os.getpid()}"):
        relaunch(tmp_path / "run")
    folder.release()
    relaunch(tmp_path / "run")


def test_a_run_has_what_people_look_for(model: Path, tmp_path: Path) -> None:
    summary = launch(make_run(model), tmp_path, "run")
    wanted = {"recipe", "seed", "steps", "seconds", "heldout_before", "heldout_after", "tokens_generated"}
    assert wanted | {"tokens_trained", "peak_rss_bytes"} <= set(summary)
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(STEPS + 1))
    assert {"reward", "length", "entropy", "no_contrast_share", "lag", "clipped_share", "kl"} <= set(rows[-1])
    assert [row["step"] for row in rows if "heldout" in row] == [0, 4, 8, 10]
