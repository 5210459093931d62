"""A run whose rollouts branch, and what must be true of its ledger whatever the tree looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from strop.capabilities import generated
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.types import IntArray, Metrics, Rollout

SMALL: dict[str, Any] = {
    "env": "arithmetic:1+guess:1",  # one completion, and several
    "steps": 2,
    "groups_per_step": 3,
    "group_size": 2,
    "max_tokens": 10,
    "heldout_tasks": 0,  # so that the engine samples for training alone
    "heldout_every": 0,
    "learning_rate": 1e-3,
}


def small(recipe: Callable[..., Run], model: Path, fields: dict[str, Any], **setting: Any) -> Run:
    """A recipe on a tiny model; the first of its stages."""
    run = recipe(Setting(model=str(model), **(SMALL | setting)), **fields)
    return replace(run.warmup or run, minibatches=1)


def grown(run: Run, folder: Path) -> tuple[list[Rollout], list[Metrics]]:
    """All rollouts that a run made, and its metrics; sampled once each, with the beginnings of their parents.

    Trained again from the ledger the run has the same bits.
    """
    launch(run, folder, "run")
    files = RunFolder(folder / "run")
    ledger = Ledger(files.ledger, read_only=True)
    made = [ledger.rollout(name) for (name,) in ledger._rows("SELECT id FROM rollouts ORDER BY number, rowid")]
    assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
    rows = [row for row in read_rows(files.metrics) if row["step"] > 0]
    sampled = sum(rollout.num_sampled for rollout in made)
    assert sampled == generated(run.engine) == rows[-1]["tokens_generated"], "each sampled token in one row"
    by_id = {rollout.id: rollout for rollout in made}
    for rollout in made:
        if rollout.parent:
            before, begun = path(by_id[rollout.parent]), beginning(rollout)
            assert before[: len(begun)].tolist() == begun.tolist(), "a branch is its parent before the cut"
    assert all(each.is_equal for each in retrain(folder / "run"))
    return made, rows


def path(rollout: Rollout) -> IntArray:
    """All tokens of its completions, given and written."""
    return np.concatenate([np.zeros(0, np.int64), *(turn.whole for turn in rollout.turns)])


def beginning(rollout: Rollout) -> IntArray:
    """What its completions were given before the first token that it wrote."""
    pieces = [np.zeros(0, np.int64)]
    for turn in rollout.turns:
        pieces.append(turn.prefix)
        if len(turn.tokens):
            break
    return np.concatenate(pieces)
