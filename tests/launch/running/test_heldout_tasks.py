"""Held-out tasks are found once for all evaluations of a run (strop.evaluation.held_out)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.launch.running.launch import launch
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.roles import PassRateEstimator, Sampler
from strop.storage.run_folder import read_rows
from strop.types import Task
from tests.tiny_models import save_pocket_like


@dataclass(frozen=True)
class Counted(Arithmetic):
    """Arithmetic that notes which held-out tasks it was asked for."""

    asked: ClassVar[list[int]] = []

    def task(self, index: int, heldout: bool = False) -> Task:
        if heldout:
            self.asked.append(index)
        return super().task(index, heldout)


def test_held_out_tasks_are_found_once(tmp_path: Path) -> None:
    """384 of countdown take 0.14 s to find, and a run is measured half a dozen times."""
    Counted.asked.clear()
    model = str(save_pocket_like(tmp_path / "model"))
    sizes = {"steps": 3, "groups_per_step": 1, "group_size": 2, "max_tokens": 4}
    run = grpo(Setting("arithmetic:1", model, heldout_tasks=3, heldout_every=1, **sizes))  # type: ignore[arg-type]
    env = (Counted(1, 0),)
    run = replace(run, envs=env, sampler=replace(run.sampler, envs=env))
    launch(run, tmp_path, "run")
    measured = [row for row in read_rows(tmp_path / "run" / "metrics.jsonl") if "heldout" in row]
    assert len(measured) == 4
    assert Counted.asked.count(1) == Counted.asked.count(2) == 1  # the first is looked at before the start, too


@dataclass
class Peeking(Sampler):
    """Takes a held-out task as its second one."""

    env: Arithmetic
    count: int = 0

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        self.count += 1
        return self.env.task(1, heldout=self.count == 2)


def test_a_sampler_that_takes_a_held_out_task_ends_the_run(tmp_path: Path) -> None:
    model = str(save_pocket_like(tmp_path / "model"))
    sizes = {"steps": 1, "groups_per_step": 2, "group_size": 2, "max_tokens": 4}
    run = grpo(Setting("arithmetic:3", model, heldout_tasks=3, **sizes))  # type: ignore[arg-type]
    held = Arithmetic(3).task(1, heldout=True).id
    with pytest.raises(ConfigurationError, match=f"Peeking chose task {held} of arithmetic:3, which is held out"):
        launch(replace(run, sampler=Peeking(Arithmetic(3))), tmp_path, "run")
    assert not (tmp_path / "run" / "checkpoints" / "step-1").exists()
