"""SEM's reward takes needless searches away, and without it they stay: two runs from one supervised one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from strop import recipe, train
from strop.filter.rewards.from_environment import Earned
from strop.recipes.agent.sem import SearchOrAnswer
from strop.run import Run
from strop.storage.run_folder import RunFolder, read_rows

SMALL: dict[str, Any] = {"env": "arithmetic:2", "steps": 4, "groups_per_step": 4, "learning_rate": 3e-4}


@dataclass(frozen=True)
class Noted(SearchOrAnswer):
    """The same metrics, and no mark."""

    weight: ClassVar[float] = 0.0


def needless(run: Run, root: Path, name: str) -> list[float]:
    """The share of rollouts that search for what they have said rightly, step by step."""
    train(run, name, root, quiet=True)
    return [row["fact/needless"] for row in read_rows(RunFolder(root / name).metrics) if row["step"]]


@pytest.mark.acts
def test_needless_searches_fall_under_the_reward_and_stay_without_it(tmp_path: Path) -> None:
    paid = recipe("sem", heldout_tasks=1, heldout_every=0, **SMALL)
    with_it = needless(paid, tmp_path, "with")
    begun = str(tmp_path / "with" / "warmup")
    plain = recipe("sem", model=begun, warmup_steps=0, heldout_tasks=1, heldout_every=0, **SMALL)
    plain.rewards = (Earned(), Noted())
    without = needless(plain, tmp_path, "without")
    assert with_it[0] == without[0] > 0.2, "both begin with the same policy, which was shown to"
    assert with_it[-1] < 0.05 and min(without) > 0.2
