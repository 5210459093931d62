"""OctoThinker's learning-rate schedule: stable, then decay, and resumed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from strop.errors import CheckpointError, ConfigurationError
from strop.recipes import build, recipe_named
from strop.recipes.distill.octothinker import StableThenDecay
from strop.training.advantages.group_relative import GroupMean
from strop.training.losses.reinforce import Reinforce
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.trainers.torch import TorchTrainer
from tests.building import make_group
from tests.tiny_models import save_pocket_like


def rates(trainer: StableThenDecay, count: int) -> list[float]:
    group = make_group([1.0, 0.0], [3, 3])
    GroupMean()([group])
    batches = pack([group], TokenMean(), 0, 100)
    return [trainer.step(batches, Objective((Reinforce(),)))["learning_rate"] for _ in range(count)]


def test_half_a_cosine_after_the_stable_steps() -> None:
    """From 2 on over 4: (1 + cos(k pi / 4)) / 2 of .9, plus .1."""
    trainer = StableThenDecay(TorchTrainer(), decay=4, stable=2)
    found = [trainer.scale(step) for step in range(8)]
    root = math.sqrt(0.5)
    assert found == pytest.approx([1, 1, 1, 0.1 + 0.45 * (1 + root), 0.55, 0.1 + 0.45 * (1 - root), 0.1, 0.1])
    assert StableThenDecay(TorchTrainer(), decay=1, floor=0.0).scale(1) == 0.0


def test_every_step_has_its_rate_also_after_a_resume(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    trainer = StableThenDecay(TorchTrainer(learning_rate=1e-3), decay=2, stable=1)
    trainer.open(model, 0)
    assert rates(trainer, 2) == pytest.approx([1e-3, 1e-3]) and trainer.inner.learning_rate == 1e-3
    (tmp_path / "saved").mkdir()
    trainer.save(tmp_path / "saved")
    again = StableThenDecay(TorchTrainer(learning_rate=1e-3), decay=2, stable=1)
    again.open(model, 0)
    again.resume(tmp_path / "saved")
    assert rates(again, 2) == pytest.approx([5.5e-4, 1e-4]) == rates(trainer, 2)
    torch.testing.assert_close(again.weights(), trainer.weights(), rtol=0, atol=0)
    (tmp_path / "saved" / "stable_then_decay.json").write_text("{}")
    with pytest.raises(CheckpointError, match="cannot read the schedule"):
        again.resume(tmp_path / "saved")


def test_branches_differ_only_in_the_demonstrations_of_the_decay_stage() -> None:
    made = {branch: build(recipe_named("octothinker"), {"branch": branch}).warmup for branch in ("short", "long")}
    short, long = made["short"], made["long"]
    assert short is not None and long is not None and short.warmup == long.warmup is not None
    assert short.trainer == long.trainer and short.agent != long.agent
    with pytest.raises(ConfigurationError, match="no branch 'brief'"):
        build(recipe_named("octothinker"), {"branch": "brief"})
    with pytest.raises(ConfigurationError, match="set ranks=1, got 2"):
        build(recipe_named("octothinker"), {"ranks": 2})


def test_invalid_schedules_are_refused() -> None:
    for wrong in ({"decay": 0}, {"decay": 1, "stable": -1}, {"decay": 1, "floor": 1.5}):
        with pytest.raises(ConfigurationError, match="stable >= 0, decay >= 1 and 0 <= floor <= 1"):
            StableThenDecay(TorchTrainer(), **wrong)  # type: ignore[arg-type]
