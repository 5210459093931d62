"""AMFT's balance: the card's scalar example, what is held back, and where the mixture goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from strop.capabilities import inside
from strop.errors import CheckpointError, ConfigurationError
from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.guide.amft import MetaMixed, _part, _reward, meta_gradient, unit
from strop.storage.run_folder import read_rows
from strop.training.batch import Batch
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics, Origin
from tests.building import make_batch, say, written


def test_the_card_s_example() -> None:
    """theta = 0: imitation (theta - 1)^2 / 2 pulls by -1, RL (theta + 1)^2 / 2 by +1, U = -(theta - 1)^2 / 2 by +1."""
    loss, imitation, exploration = ({"theta": torch.tensor([value])} for value in (-1.0, -1.0, 1.0))
    assert meta_gradient(loss, imitation, exploration, rate=0.1) == pytest.approx(0.2)
    assert meta_gradient(loss, exploration, imitation, rate=0.1) == pytest.approx(-0.2)


def test_gradients_have_one_length() -> None:
    found = unit({"a": torch.tensor([3.0]), "b": torch.tensor([0.0, 4.0])})
    assert found["a"].tolist() == pytest.approx([0.6]) and found["b"].tolist() == pytest.approx([0.0, 0.8])
    assert unit({"a": torch.zeros(2)})["a"].tolist() == [0.0, 0.0]


def batch() -> Batch:
    """Groups 0 and 1: a rollout of the policy's each, and a demonstration in group 0."""
    made = make_batch([[-1.0], [-1.0], [-1.0]], [2.0, 3.0, 5.0], groups=[0, 0, 1], share=[[1.0], [1.0], [1.0]])
    made.origins = torch.tensor([0, 2, 0])
    return made


def test_every_fourth_group_is_held_back_and_only_own_rollouts_speak_for_it() -> None:
    whole = batch()
    assert written(whole, _part(whole, 4, True).trainable.double()) == [1.0, 1.0, 0.0]
    assert written(whole, _part(whole, 4, False).trainable.double()) == [0.0, 0.0, 1.0]
    output = say([[-1.0], [-1.0], [-1.0]])
    value, _ = _reward(output, _part(whole, 4, True))
    value.backward()
    assert written(whole, output.logprobs.grad) == [-2.0, 0.0, 0.0], "neither the demonstration nor what is trained"


class Pulled(TorchTrainer):
    """Gradients of the card's example: imitation pulls as other tasks do, RL the other way."""

    mixed: tuple[float, float] = (0.0, 0.0)

    def gradient(self, batches: Any, objective: Any) -> dict[str, torch.Tensor]:
        explores = isinstance(objective, Objective) and bool(inside(list(objective.losses), Clip))
        return {"theta": torch.tensor([1.0 if explores else -1.0])}

    def step(self, batches: Any, objective: Any) -> Metrics:
        values = []
        for origin in (0, 2):  # the policy's rollouts alone, then the demonstrations alone
            output, made = say([[-1.0], [-1.0], [-1.0]]), batches[0]
            made.origins = torch.full_like(made.origins, origin)
            values.append(float(objective(output, made)[0].detach()))
        self.mixed = (values[0], values[1])
        return {"entropy": 1.0}


def test_which_loss_is_imitation() -> None:
    """Group 1 is trained, A = 5: RL says -5 at ratio 1, imitation -log p = 1; at mu = .25, -5 * .75 and 1 * .25."""
    inner = Pulled()
    trainer = MetaMixed(inner, mu=0.25)
    trainer._now = {"mu": 0.25}
    losses = (Among(Clip(), (Origin.POLICY,)), Among(Likelihood(), (Origin.TEACHER,)))
    assert trainer.step([batch()], Objective(losses))["meta_gradient"] == pytest.approx(2.0)
    assert inner.mixed == pytest.approx((-3.75, 0.25)) and trainer._now["mu"] == pytest.approx(0.45)


def learned(**fields: float) -> MetaMixed:
    trainer = MetaMixed(TorchTrainer(), **fields)  # type: ignore[arg-type]
    trainer._now = {"mu": trainer.mu}
    return trainer


def test_where_the_balance_goes() -> None:
    """0.5 + 0.1 * 2 = 0.7; then entropy 3 above its first value: 0.7 + 0.01 * 3; the printed sign takes it away."""
    for printed, after in ((False, 0.73), (True, 0.67)):
        trainer = learned(printed=printed)
        trainer._learn(2.0, 1.0)
        assert trainer._now["mu"] == pytest.approx(0.7)
        trainer._learn(0.0, 4.0)
        assert trainer._now["mu"] == pytest.approx(after) and trainer._now["entropy"] == 1.0
    trainer = learned()
    for says, bound in ((9.0, 0.95), (-20.0, 0.05)):
        trainer._learn(says, 1.0)
        assert trainer._now["mu"] == bound
    still = learned(rate=0.0, entropy_rate=0.0)
    still._learn(9.0, 1.0)
    assert still._now["mu"] == 0.5


def test_in_a_run_it_moves_and_is_kept(tmp_path: Path) -> None:
    sizes = {
        "steps": 2,
        "groups_per_step": 4,
        "group_size": 3,
        "heldout_tasks": 1,
        "warmup_steps": 0,
        "env": "arithmetic:2",
    }
    run = build(recipe_named("amft"), {**sizes, "checkpoint_every": 1})
    launch(run, tmp_path, "run")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")[1:]
    assert rows[0]["mu"] == 0.5 != rows[1]["mu"] and rows[0]["meta_gradient"] != 0.0
    assert rows[0]["ratio"] == pytest.approx(1.0, abs=1e-3), "a mean over what was trained"
    assert 0 < rows[0]["teacher/share"] < 1 and rows[0]["teacher/nll"] > 0
    folder = tmp_path / "run" / "checkpoints" / "step-2"
    kept = json.loads((folder / "meta_mixed.json").read_text())
    assert kept["entropy"] == pytest.approx(rows[0]["entropy"]) and 0.05 <= kept["mu"] <= 0.95
    assert isinstance(run.trainer, MetaMixed)
    run.trainer.resume(folder)
    assert run.trainer._now == kept
    (folder / "meta_mixed.json").write_text("[]")
    with pytest.raises(CheckpointError, match="cannot read the mixing weight"):
        run.trainer.resume(folder)


def test_refuses_what_cannot_work() -> None:
    for wrong in ({"mu": 0.99}, {"bounds": (0.6, 0.4)}, {"every": 1}):
        with pytest.raises(ConfigurationError, match="MetaMixed needs 0 <= bounds <= 1 around mu and every >= 2"):
            MetaMixed(TorchTrainer(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="need groups_per_step >= 4, got 3"):
        check(build(recipe_named("amft"), {"groups_per_step": 3}))
    run = build(recipe_named("amft"), {})
    run.losses = run.losses[:1]
    with pytest.raises(ConfigurationError, match="needs exactly 2 losses, got 1"):
        check(run)
