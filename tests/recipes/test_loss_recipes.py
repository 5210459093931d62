"""Every recipe of a loss runs two steps on a small model, moves its weights, and its metrics are numbers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from strop.filter.rewards.pairwise_vs_reference import Pairwise
from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from tests.parts import EvenOrOdd
from tests.tiny_models import save_pocket_like

RECIPES: list[tuple[str, dict[str, object]]] = [
    ("nft", {}),
    ("nft", {"task_weight": "root"}),
    ("kdrl", {"teacher": "TEACHER"}),
    ("kdrl", {"teacher": "TEACHER", "mask": "group", "estimator": "k3"}),
    ("cpgd", {}),
    ("archer_dual_token", {}),
    ("echo_env", {}),
    ("otr", {}),
    ("pacs", {}),
    ("rover", {}),
    ("rl_plus", {}),
    ("calibrl", {}),
    ("rapo", {}),
    ("ift", {}),
    ("language_irl", {}),
    ("rl4lms", {}),
    ("semi_online", {"period": 2}),
    ("iterative_dpo", {"period": 2}),
    ("h_dpo", {}),
    ("divpo", {}),
    ("dno", {"period": 2}),
    ("dno", {"period": 1, "margin": 0.2}),
    ("pairwise_rl", {}),
    ("direct_preference", {}),
    ("fpo", {}),
    ("sapo_soft", {}),
    ("exact_kl", {"direction": "forward"}),
    ("cispo", {}),
    ("gspo", {}),
    ("reg_grpo", {}),
    ("entropy_band", {"low": 9.0, "high": 10.0}),
    ("distillation", {"teacher": "TEACHER"}),
    ("ipo", {}),
    ("orpo", {}),
    ("simpo", {}),
    ("kto", {}),
    ("expert_iteration", {}),
    ("expert_iteration", {"distinct": False}),
    ("reinforce_plus_plus", {"advantage": "group"}),
    ("moving_reference", {"every": 1}),
]

# a metric that stays at its neutral value where a mechanism cannot act
ACTING: dict[str, dict[str, float]] = {
    "nft": {"drift": 0.0},
    "cpgd": {"clipped_share": 0.0, "kl": 0.0},
    "archer_dual_token": {"clipped_share": 0.0, "drift": 0.0},
    "pacs": {"classified_right": 0.0},
    "rover": {"q": 0.0, "next_q": 0.0},
    "sapo_soft": {"gate": 1.0},
    "cispo": {"drift": 0.0},
    "gspo": {"clipped_share": 0.0},
    "reg_grpo": {"abs_log_ratio": 0.0},
    "kdrl": {"teacher_kl": 0.0},
    "distillation": {"teacher_kl": 0.0},
    "calibrl": {"guided_share": 0.0},
    "rl_plus": {"outside_share": 0.0},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A student and a teacher."""
    folder = tmp_path_factory.mktemp("models")
    return save_pocket_like(folder / "student"), save_pocket_like(folder / "teacher", seed=1)


@pytest.mark.parametrize(("name", "values"), RECIPES)
def test_two_steps(models: tuple[Path, Path], tmp_path: Path, name: str, values: dict[str, object]) -> None:
    sizes = {"groups_per_step": 4, "group_size": 4, "max_tokens": 8, "heldout_tasks": 1, "steps": 2}
    if name in ("otr", "ift", "language_irl"):
        sizes |= {"group_size": 1, "max_tokens": 40}
    asked = {key: str(models[1]) if value == "TEACHER" else value for key, value in values.items()}
    rate = 3e-2 if name in ACTING else 1e-3  # far enough for clips and gates
    run = build(recipe_named(name), {"model": str(models[0]), "learning_rate": rate, **sizes, **asked})
    if not isinstance(run.rewards[0], Pairwise):
        run.rewards = (EvenOrOdd(),)
    check(run)
    launch(run, tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    rows = read_rows(folder.metrics)
    assert rows[-1]["step"] == 2
    assert all(math.isfinite(value) for value in rows[-1].values() if isinstance(value, float))
    assert rows[1]["grad_norm"] > 0
    assert all(abs(rows[-1][metric] - neutral) > 1e-4 for metric, neutral in ACTING.get(name, {}).items()), rows[-1]
    ledger = Ledger(folder.ledger, read_only=True)
    assert len(set(ledger.fingerprints().values())) == 3
    ledger.close()
