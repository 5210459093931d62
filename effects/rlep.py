"""RLEP (2507.07451), right rollouts of an earlier run in every group, against the same training without them.

The earlier run is of the same tasks, 64 of arithmetic:6, and made when it is first needed; it is kept in runs/pools and
not counted, as in the paper. That of the negative control is the same with right and wrong exchanged in its ledger, so
that failures are replayed, rewarded as what they are.
On 64 tasks of keyvalue:5 and 250,000 tokens it was +0.009 (-0.002 to +0.020).
Papers: rlep
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from strop.control.samplers.few import Few
from strop.effects import Experiment
from strop.effects.prior_runs import earlier_run
from strop.generate.strategies.independent import Independent
from strop.recipes.classics.dapo import dapo
from strop.recipes.replay.rlep import rlep
from strop.recipes.setting import Setting
from strop.run import Run

ENV = "arithmetic:6"
TASKS = 64
POOL_STEPS = 40
POOLS = Path("runs/pools")
_EXCHANGED = "json_set(rewards, '$.outcome', 1 - json_extract(rewards, '$.outcome'))"


def pool(setting: Setting, is_right: bool = True) -> str:
    """The folder of the earlier run of this seed."""
    kept = POOLS / f"{ENV.replace(':', '')}-seed{setting.seed}-{POOL_STEPS}"
    folder = earlier_run(kept, lambda: _earlier(setting), lambda made: _exchange(made / "ledger.db", made / "wrong"))
    return str(folder if is_right else folder / "wrong")


def _earlier(setting: Setting) -> Run:
    sizes = {"steps": POOL_STEPS, "checkpoint_every": POOL_STEPS, "heldout_every": 0, "learning_rate": 1e-4}
    run = dapo(Setting(env=ENV, seed=setting.seed, device=setting.device, **sizes), minibatches=1)
    return replace(run, sampler=Few(run.envs, TASKS), gates=(), rewards=run.rewards[:1])


def _exchange(ledger: Path, folder: Path) -> None:
    """A copy in which wrong rollouts count as right and the other way round."""
    folder.mkdir()
    with sqlite3.connect(ledger) as book:
        book.execute("VACUUM INTO ?", (str(folder / "ledger.db"),))
    with sqlite3.connect(folder / "ledger.db") as book:
        book.execute(f"UPDATE rollouts SET rewards = {_EXCHANGED} WHERE reward IS NOT NULL")


def _run(setting: Setting, folder: str) -> Run:
    sized = replace(setting, env=ENV, group_size=8, heldout_tasks=256, heldout_every=4)
    run = rlep(sized, pool=folder)
    return replace(run, sampler=Few(run.envs, TASKS), rewards=run.rewards[:1])


def treatment(setting: Setting) -> Run:
    """Two right rollouts of the earlier run beside eight fresh ones."""
    return _run(setting, pool(setting))


def control(setting: Setting) -> Run:
    """Eight fresh ones alone."""
    return replace(_run(setting, pool(setting)), strategy=Independent())


def negative(setting: Setting) -> Run:
    """Two wrong rollouts of the earlier run beside eight fresh ones."""
    return _run(setting, pool(setting, is_right=False))


experiment = Experiment(
    key="rlep",
    claim="At equal generated tokens, two right rollouts of an earlier run in every group reach a higher held-out "
    "accuracy on the way than fresh rollouts alone.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=120_000,
    metric="heldout_area",
)
