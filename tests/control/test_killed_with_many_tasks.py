"""kill -9 of a run whose pass-rate estimator, sampler or budget remembers 20,000 tasks: gone on with, it ends with the
same bits.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from strop.control.estimators.level_plus_offset import Offsets
from strop.environments.bundled.arithmetic import Arithmetic
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.select.dps import Dynamics
from strop.recipes.select.xrpo import UncertaintyReduction
from strop.run import Run
from strop.storage import checkpoint
from strop.types import SUCCESS, Group, Outcome, Rollout
from tests.launch.running.test_resume import CONTEXT, STEPS, go_on, leftovers
from tests.parts import EvenOrOdd
from tests.tiny_models import save_pocket_like

MANY = 20_000
ENVS = Arithmetic(4), Arithmetic(6)


@dataclass
class Practised(Offsets):
    """Has seen many tasks when a run begins, as long as there is no file of this name; what goes on begins empty."""

    mark: str = ""

    def __post_init__(self) -> None:
        if not Path(self.mark).exists():
            for number in range(MANY):
                self.observe(told(number))
            self.predict([], 0)

    def save(self, folder: Path) -> None:
        Path(self.mark).touch()
        super().save(folder)


def told(number: int) -> Group:
    task = ENVS[number % 2].task(10_000 + number)
    mark = float(number % 3 == 0)
    return Group(number, task, [Rollout(str(number), task, (), Outcome.FINISHED, facts={SUCCESS: mark})])


def of_estimator(run: Run, folder: Path) -> None:
    run.estimator = Practised(mark=str(folder / "practised"))
    run.sampler = Dynamics(run.envs, 64)


def of_sampler(run: Run, folder: Path) -> None:
    run.sampler = Dynamics(run.envs, MANY // 2)


def of_budget(run: Run, folder: Path) -> None:
    """Shares of all tasks that were tried are in the pass-rate estimator; its own memory are the price and what is
    still open.
    """
    of_estimator(run, folder)
    run.budget = UncertaintyReduction(first=2, chunk=2, mean=4.0, most=6)


KINDS: dict[str, Callable[[Run, Path], None]] = {"estimator": of_estimator, "sampler": of_sampler, "budget": of_budget}


def make_run(model: Path, kind: str, folder: Path) -> Run:
    sizes = {"groups_per_step": 4, "group_size": 4, "max_tokens": 8, "heldout_tasks": 2, "learning_rate": 1e-3}
    run = build(recipe_named("grpo"), {"model": str(model), "env": "arithmetic:4+arithmetic:6", **sizes})
    run.steps, run.checkpoint_every, run.rewards = STEPS, 2, (EvenOrOdd(),)
    KINDS[kind](run, folder)
    return run


def begin(model: Path, kind: str, path: Path) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    launch(make_run(model, kind, path.parent), path.parent, path.name)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="kills forked processes")
@pytest.mark.parametrize("kind", KINDS)
def test_killed_and_gone_on_with_it_ends_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    begin(model, kind, tmp_path / "whole" / "run")
    path = tmp_path / "killed" / "run"
    child = CONTEXT.Process(target=begin, args=(model, kind, path))
    child.start()
    while len(checkpoint.listed(path / "checkpoints")) < 2 and child.is_alive():
        time.sleep(0.01)
    child.kill()
    child.join()
    done = checkpoint.listed(path / "checkpoints")
    assert len(done) >= 2 and done[-1].name != f"step-{STEPS}", "killed in the middle"
    if kind != "sampler":
        assert (done[-1] / "estimator" / "tasks.npy").stat().st_size > 19_000 * 16
    again = CONTEXT.Process(target=go_on, args=(path,))
    again.start()
    again.join(300)
    assert again.exitcode == 0
    assert leftovers(path)[:2] == leftovers(tmp_path / "whole" / "run")[:2]
    ends = [checkpoint.listed(each / "checkpoints")[-1] for each in (tmp_path / "whole" / "run", path)]
    names = ["roles.json", *(() if kind == "sampler" else ("estimator/tasks.npy", "estimator/kinds.npy"))]
    assert all((ends[0] / name).read_bytes() == (ends[1] / name).read_bytes() for name in names)
