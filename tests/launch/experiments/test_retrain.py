"""A run trained again from its ledger alone has the same bits, also one whose order depended on who was quick."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.control.admission.bounded_lag import BoundedLag
from strop.errors import ConfigurationError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.zero_variance import ZeroVariance
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.training.trainers.torch import TorchTrainer
from strop.weights.fingerprint import fingerprint
from tests.parts import LongerIsBetter

STEPS = 6


def make_run(model: Path, recipe: str = "grpo", **parts: Any) -> Run:
    sizes = {"steps": STEPS, "groups_per_step": 4, "group_size": 4, "max_tokens": 12, "heldout_tasks": 2}
    rates = {"heldout_every": 0, "checkpoint_every": 2, "learning_rate": 1e-3}
    run = build(recipe_named(recipe), {"model": str(model), **sizes, **rates})
    return replace(run, rewards=(LongerIsBetter(),), rescore_every=2, **parts)


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "grpo": ("grpo", {}),
    "ppo": ("ppo", {}),
    "dapo": ("dapo", {"gates": (ZeroVariance(),)}),
    "dpo": ("dpo", {}),
    "lag 4": ("grpo", {"admission": BoundedLag(4)}),
    "lag 4, minibatches, trimmed": (
        "grpo",
        {"admission": BoundedLag(4), "gates": (BestAndWorst(),), "minibatches": 3, "epochs": 2},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_trained_again_from_the_ledger_it_has_the_same_bits(model: Path, tmp_path: Path, variant: str) -> None:
    recipe, parts = VARIANTS[variant]
    run = make_run(model, recipe, **parts)
    launch(run, tmp_path, "run")
    made = retrain(tmp_path / "run")
    assert [each.step for each in made] == list(range(STEPS + 1)) and all(each.is_equal for each in made)
    assert all(each.published for each in made), "every version was recorded when it was published"
    # the checkpoints that are left were compared too: the last two, and an earlier one where that was the best
    assert [each.step for each in made if each.saved][-2:] == [4, 6]
    assert made[-1].fingerprint == fingerprint(run.trainer.weights())
    assert made[-1].fingerprint != made[0].fingerprint


def test_a_run_whose_engine_reads_the_trainers_weights_has_the_same_bits(model: Path, tmp_path: Path) -> None:
    """Its versions are named by weights that were lent and by adapters; its checkpoints hold whole weights."""
    trainer = TorchTrainer(learning_rate=1e-3, lora=4, fused="on")
    engine = PagedEngine(rows=16, device="cpu", dtype="float32")
    run = replace(make_run(model, trainer=trainer, engine=engine), steps=2)
    launch(run, tmp_path, "run")
    assert engine._model is not None and trainer._opened is not None and engine._model is trainer._opened.model
    made = retrain(tmp_path / "run")
    assert [each.step for each in made] == [0, 1, 2] and all(each.is_equal for each in made)
    assert made[2].published and made[2].saved and made[2].fingerprint != fingerprint(trainer.weights())


def test_a_resumed_asynchronous_run_can_be_trained_again(model: Path, tmp_path: Path) -> None:
    """Its first half is what happened before the stop, its second what happened after."""
    run = make_run(model, admission=BoundedLag(2))
    launch(replace(run, steps=3), tmp_path, "run")
    recipe = tmp_path / "run" / "recipe.py"
    recipe.write_text(recipe.read_text().replace("steps=3,", f"steps={STEPS},"))
    relaunch(tmp_path / "run", changed_anyway=True, trust=True)
    made = retrain(tmp_path / "run")
    assert len(made) == STEPS + 1 and all(each.is_equal for each in made)


def test_one_changed_number_is_found_at_its_step(model: Path, tmp_path: Path) -> None:
    launch(make_run(model), tmp_path, "run")
    database = sqlite3.connect(tmp_path / "run" / "ledger.db")
    database.execute(
        "UPDATE rollouts SET reward = reward + 1 WHERE id = (SELECT rollout FROM trainings WHERE step = 3 LIMIT 1)"
    )
    database.commit()
    database.close()
    made = retrain(tmp_path / "run")
    assert [each.is_equal for each in made] == [True, True, True, False] and made[-1].step == 3


def test_the_order_of_a_draw_is_part_of_the_record(model: Path, tmp_path: Path) -> None:
    launch(make_run(model, "dpo"), tmp_path, "run")
    ledger = Ledger(tmp_path / "run" / "ledger.db", read_only=True)
    for step in range(1, STEPS + 1):
        for group in ledger.trained_groups(step):
            best, worst = group.rollouts
            assert best.reward > worst.reward, "kept as the best, then the worst, whoever came first"
            assert group.times_trained == 1
    orders = {tuple(t.id[-1] for t in group.rollouts) for step in (1, 2, 3) for group in ledger.trained_groups(step)}
    assert any(order != tuple(sorted(order)) for order in orders), "no group was trimmed out of order: nothing tested"


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not a run folder"):
        retrain(tmp_path)
