"""Checkpoints are complete or not there, and damage is found."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from strop.errors import CheckpointError, StropError
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.system.dart import BySuccess, SuccessPool
from strop.storage import checkpoint
from strop.types import Task
from tests.building import make_group
from tests.tiny_models import save_pocket_like


@dataclass
class Counter:
    start: int = 0
    seen: int = field(default=0, init=False, repr=False)

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


@dataclass
class Wrapper:
    inner: Counter


@dataclass
class Weights:
    value: bytes = b"weights"

    def save(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "model.bin").write_bytes(self.value)

    def resume(self, folder: Path) -> None:
        self.value = (folder / "model.bin").read_bytes()


@dataclass
class Parts:
    trainer: Weights = field(default_factory=Weights)
    sampler: Wrapper = field(default_factory=lambda: Wrapper(Counter()))
    gates: tuple[Counter, ...] = ()


def test_every_role_with_memory_is_found_by_walking_the_fields(tmp_path: Path) -> None:
    parts = Parts(gates=(Counter(), Counter()))
    parts.sampler.inner.seen, parts.gates[1].seen, parts.trainer.value = 5, 7, b"trained"
    checkpoint.write(tmp_path, 3, parts, {"tokens": 11})
    fresh = Parts(gates=(Counter(), Counter()))
    assert checkpoint.read(tmp_path / "step-3", fresh, lambda number: make_group([], number=number)) == {"tokens": 11}
    assert (fresh.sampler.inner.seen, fresh.gates[0].seen, fresh.gates[1].seen) == (5, 0, 7)
    assert fresh.trainer.value == b"trained"


def test_a_memory_that_forgets_the_oldest_keeps_its_order(tmp_path: Path) -> None:
    """Three tasks seen in the order z, a, m: whoever reads the checkpoint forgets z first, as the run itself would."""

    @dataclass
    class Parts:
        budget: BySuccess = field(default_factory=BySuccess)
        gates: tuple[SuccessPool] = field(default_factory=lambda: (SuccessPool(),))

    parts, fresh = Parts(), Parts()
    for name in "zam":
        group = replace(make_group([1.0, 0.0]), task=Task((), "", "test", id=name))
        parts.budget.observe(group)
        parts.gates[0](group)
    checkpoint.write(tmp_path, 1, parts, {})
    checkpoint.read(tmp_path / "step-1", fresh, lambda number: make_group([], number=number))
    assert list(fresh.budget.state()["latest"]) == list(fresh.gates[0].state()["newest"]) == ["z", "a", "m"]


def test_a_changed_recipe_is_refused(tmp_path: Path) -> None:
    checkpoint.write(tmp_path, 1, Parts(), {})
    with pytest.raises(CheckpointError, match=r"knows nothing of gates\.0"):
        checkpoint.read(tmp_path / "step-1", Parts(gates=(Counter(),)), lambda number: make_group([], number=number))


def test_a_flipped_byte_and_a_missing_file_are_found_and_the_one_before_serves(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        checkpoint.write(tmp_path, step, Parts(), {})
    model = tmp_path / "step-3" / "model.bin"
    model.write_bytes(bytes([model.read_bytes()[0] ^ 1]) + model.read_bytes()[1:])
    (tmp_path / "step-2" / "roles.json").unlink()
    newest, problems = checkpoint.newest_whole(tmp_path)
    assert newest.name == "step-1"
    assert "model.bin is not what was written" in problems[0]
    assert "roles.json is missing" in problems[1]


def test_no_whole_checkpoint_says_what_is_wrong_with_each(tmp_path: Path) -> None:
    checkpoint.write(tmp_path, 1, Parts(), {})
    (tmp_path / "step-1" / "manifest.json").write_text('{"files": ')
    with pytest.raises(CheckpointError, match="step-1 has no readable manifest"):
        checkpoint.newest_whole(tmp_path)


def test_only_the_newest_are_kept_and_unfinished_ones_do_not_count(tmp_path: Path) -> None:
    for step in (9, 10, 11):
        checkpoint.write(tmp_path, step, Parts(), {})
    shutil.copytree(tmp_path / "step-11", tmp_path / ".step-12.building")
    checkpoint.prune(tmp_path, keep=2)
    assert [path.name for path in checkpoint.listed(tmp_path)] == ["step-10", "step-11"]


@dataclass
class Unwritable:
    def save(self, folder: Path) -> None:
        raise OSError(28, os.strerror(28))

    def resume(self, folder: Path) -> None: ...


def test_a_full_disk_leaves_the_checkpoints_before_it_whole(tmp_path: Path) -> None:
    checkpoint.write(tmp_path, 1, Parts(), {})
    with pytest.raises(CheckpointError, match=r"No space left on device.*MB free.*before it are whole"):
        checkpoint.write(tmp_path, 2, Parts(trainer=Unwritable()), {})  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert checkpoint.newest_whole(tmp_path)[0].name == "step-1"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A run on a disk with room for one checkpoint ends with a clear error, and that one is whole."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        model = save_pocket_like(tmp_path / "model")
        values = {"model": str(model), "steps": 8, "checkpoint_every": 1, "heldout_tasks": 2, "max_tokens": 8}
        with pytest.raises(StropError, match=r"No space left|disk is full|full"):
            launch(build(recipe_named("rloo"), values | {"groups_per_step": 2, "group_size": 2}), disk, "run")
        checkpoint.newest_whole(disk / "run" / "checkpoints")
    finally:
        subprocess.run(["umount", disk], check=True)
