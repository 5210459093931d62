from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strop.control.admission.periodic import Periodic
from strop.control.admission.support.admission_state import Standing
from strop.errors import ConfigurationError
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from tests.parts import EvenOrOdd
from tests.tiny_models import save_pocket_like


def test_a_round_is_filled_before_its_first_step_and_never_after() -> None:
    admission = Periodic(3)
    assert admission.lag == 2
    assert admission.may_start(0, 0, 3, 2) and admission.may_start(5, 0, 3, 2)
    assert not admission.may_start(6, 0, 3, 2)  # the round of three draws is under way
    assert not admission.may_start(3, 2, 3, 2)  # a replacement waits until nothing runs
    assert admission.may_start(0, 5, 3, 2)
    assert not admission.may_start(0, 0, 4, 2) and not admission.may_start(0, 0, 5, 2)
    assert admission.batch_size(Standing(3, 2, (), (3,) * 5, 0)) == 0
    assert admission.batch_size(Standing(3, 2, (3,), (3,) * 5, 0)) == 0
    assert admission.batch_size(Standing(3, 2, (), (3,) * 6, 0)) == 2
    assert admission.batch_size(Standing(4, 2, (), (3,) * 4, 0)) == 2


def test_the_last_round_is_no_longer_than_the_run() -> None:
    admission = Periodic(4, steps=6)
    assert admission.may_start(0, 0, 4, 1) and not admission.may_start(0, 2, 4, 1)
    assert admission.batch_size(Standing(4, 1, (), (4, 4), 0)) == 1
    with pytest.raises(ConfigurationError, match="period >= 1 and steps >= 0, got 0 and 0"):
        Periodic(0)


@pytest.mark.parametrize("period", [1, 2, 3])
def test_every_step_trains_on_the_version_its_round_began_with(period: int, tmp_path: Path) -> None:
    """The generator's weights at update t are those of period * floor(t / period), though gates drop groups."""
    sizes = {"groups_per_step": 2, "group_size": 3, "max_tokens": 4, "heldout_tasks": 1, "steps": 5, "period": period}
    run = build(recipe_named("semi_online"), {"model": str(save_pocket_like(tmp_path / "model")), **sizes})
    run.rewards = (EvenOrOdd(),)
    launch(run, tmp_path, "run")
    ledger = Ledger(RunFolder(tmp_path / "run").ledger, read_only=True)
    for step in range(1, 6):
        versions = [turn.versions for group in ledger.trained_groups(step) for t in group.rollouts for turn in t.turns]
        assert set(np.concatenate(versions).tolist()) == {period * ((step - 1) // period)}
    assert ledger.counts().get("gated", 0) > 0
    ledger.close()
