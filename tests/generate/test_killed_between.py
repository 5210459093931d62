"""Killed after the roots of a group are made and before its branches: resumed, the run has the same ledger."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from strop.generate.group_rollouts import GroupPlayer
from strop.launch.running.launch import launch, relaunch
from strop.recipes.rollout.ettrl import ettrl
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from tests.generate.trees import small
from tests.launch.running.test_resume import CONTEXT
from tests.tiny_models import save_pocket_like


def begin(model: Path, path: Path, looks: int) -> None:
    """A look stands between roots and branches; at this one the process is killed."""
    look, seen = GroupPlayer.look, 0

    async def last_look(self: GroupPlayer, *asked: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == looks:
            os.kill(os.getpid(), signal.SIGKILL)
        return await look(self, *asked)

    GroupPlayer.look = last_look  # type: ignore[method-assign]
    launch(small(ettrl, model, {}, steps=3, checkpoint_every=1), path.parent, path.name)


@pytest.mark.skipif(sys.platform != "linux", reason="kills forked processes")
def test_killed_between_root_and_branch_and_resumed_it_has_the_same_ledger(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    launch(small(ettrl, model, {}, steps=3, checkpoint_every=1), tmp_path, "whole")
    CONTEXT.set_forkserver_preload(["tests.launch.running.test_resume"])
    died = CONTEXT.Process(target=begin, args=(model, tmp_path / "killed", 5))
    died.start()
    died.join(120)
    assert died.exitcode == -signal.SIGKILL
    steps = [row["step"] for row in read_rows(RunFolder(tmp_path / "killed").metrics)]
    assert steps == [0, 1], "in the second step"
    relaunch(tmp_path / "killed")
    whole, killed = (Ledger(RunFolder(tmp_path / name).ledger, read_only=True) for name in ("whole", "killed"))
    assert whole.digest() == killed.digest() and len(killed.trained_steps()) == 3
