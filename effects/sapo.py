"""SAPO (2509.08721): half of the groups from a peer that is further along, against own groups alone.

The peer is the bundled model after a longer training on the same environment, that of the negative control the bundled
model as it is; what they share is made when it is first needed and kept in runs/swarms.
On countdown:4, with a peer of 150 steps, it was -0.107 (-0.122 to -0.092): what such a peer does wrong is so unlikely
here that a loss without ratio drives the policy away from itself.
Papers: sapo
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from strop.effects import Experiment
from strop.effects.prior_runs import earlier_run
from strop.recipes.classics.dapo import dapo
from strop.recipes.setting import Setting
from strop.recipes.system.sapo_sharing import Swarm, sapo_sharing
from strop.run import Run

ENV = "arithmetic:5"
TAUGHT_STEPS = 40
SHARED_STEPS = 40
SWARMS = Path("runs/swarms")


def shared(device: str, is_ahead: bool = True) -> str:
    """A folder with what the peer tried."""
    kept = SWARMS / f"arithmetic5-{TAUGHT_STEPS if is_ahead else 0}"
    making = kept.with_name(f"{kept.name}-making").resolve()  # only one process at a time comes here

    def run() -> Run:
        shutil.rmtree(making, ignore_errors=True)
        return peer(device, str(making), is_ahead)

    return str(earlier_run(kept, run, lambda made: making.rename(made / "shared")) / "shared")


def peer(device: str, folder: str, is_ahead: bool) -> Run:
    """Shares what it tries without learning, perhaps after it has learned for a while."""
    plain = Setting(env=ENV, seed=1000, device=device, heldout_every=0, heldout_tasks=16)
    taught = replace(plain, steps=TAUGHT_STEPS, learning_rate=1e-4, checkpoint_every=TAUGHT_STEPS)
    resting = replace(plain, steps=SHARED_STEPS, learning_rate=1e-12, checkpoint_every=SHARED_STEPS)
    run = replace(dapo(resting), gates=(), strategy=Swarm(folder, "peer"))
    return replace(run, warmup=dapo(taught, minibatches=1)) if is_ahead else run


def _run(setting: Setting, folder: str, foreign: int = 4) -> Run:
    sized = replace(setting, env=ENV, learning_rate=3e-5, heldout_tasks=256, heldout_every=4)
    return sapo_sharing(sized, folder=folder, node="", own=8 - foreign, foreign=foreign)


def treatment(setting: Setting) -> Run:
    """Four own groups, and four of a peer that is further along."""
    return _run(setting, shared(setting.device))


def control(setting: Setting) -> Run:
    """Eight own groups."""
    return _run(setting, shared(setting.device), foreign=0)


def negative(setting: Setting) -> Run:
    """Four own groups, and four of a peer that is where training begins."""
    return _run(setting, shared(setting.device, is_ahead=False))


experiment = Experiment(
    key="sapo",
    claim="At equal tokens sampled by the node, half of the groups from a peer that is further along give a higher "
    "mean held-out accuracy over the run than own groups alone, or half from a peer that is where training begins.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=80_000,
    metric="heldout_area",
)
