"""Retraining of a run from its ledger, without engine, environment or reward; on a CPU the weights have the same bits.

The batches of an asynchronous run depend on timing. Its ledger holds every batch in order, with the tokens, logprobs,
versions and rewards that the trainer used, so the training can be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file

from strop.capabilities import Closes, Keeps, inside, outermost
from strop.errors import ConfigurationError, DataError
from strop.launch.running.launch import open_learners, warmed
from strop.models import torch_setup
from strop.models.loading.model_names import model_folder
from strop.pipeline import learn
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import from_source
from strop.training.learners import learners_of
from strop.weights.delivery import as_held, shared_by
from strop.weights.fingerprint import fingerprint


@dataclass(frozen=True)
class Replayed:
    """One retrained version: its fingerprint, and the recorded and saved ones (empty where there are none)."""

    step: int
    fingerprint: str
    published: str
    saved: str

    @property
    def is_equal(self) -> bool:
        return all(other in ("", self.fingerprint) for other in (self.published, self.saved))


def retrain(
    path: Path, told: Callable[[Replayed], None] = lambda replayed: None, trust: bool = False
) -> list[Replayed]:
    """Make every version of a run again, up to the first that differs; `told` hears of each.

    A recipe.py that this user did not write is executed only with `trust`.
    """
    folder = RunFolder(path)
    if not folder.recipe.is_file() or not folder.ledger.is_file():
        raise ConfigurationError(f"{path} is not a run folder: it needs recipe.py and ledger.db")
    folder.read_origin()  # one of another version is refused
    run: Run = warmed(from_source(folder.recipe, trust), folder)
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        return _retrain(run, folder, ledger, told)
    finally:
        ledger.close()
        for _, part in outermost(run.trainer, Closes):
            asyncio.run(part.close())


def _retrain(run: Run, folder: RunFolder, ledger: Ledger, told: Callable[[Replayed], None]) -> list[Replayed]:
    saved = _saved(folder)
    published, steps = ledger.fingerprints(), ledger.trained_steps()
    if steps != list(range(1, len(steps) + 1)):
        raise DataError(f"the ledger holds steps {steps}: each from 1 on is needed to train again")
    _open(run, folder)
    made: list[Replayed] = []
    learners = learners_of(run)
    for step in (0, *steps):
        if step:
            learn(run, ledger.trained_groups(step), step - 1, learners)
        weights = run.trainer.weights()
        whole = fingerprint(as_held(weights, [run.engine]))
        kept = _fingerprint_of(run, saved[step], set(weights)) if step in saved else ""
        name = _name(run, whole, published.get(step, ""))
        made.append(Replayed(step, name, published.get(step, ""), name if kept == whole else kept))
        told(made[-1])
        if not made[-1].is_equal:
            break
    return made


def _open(run: Run, folder: RunFolder) -> None:
    """The parts that learn, where the run began."""
    torch_setup.set_up(run.threads, is_deterministic=True)
    torch.manual_seed(run.seed)
    model = model_folder(run.model)
    for keeper in inside(run.trainer, Keeps):
        keeper.keep_in(folder.path)  # its pictures are there
    run.trainer.open(model, run.seed)
    open_learners(run, model)


def _name(run: Run, whole: str, published: str) -> str:
    """As the run named its weights: whole, or as what was shared to the engine and the adapters beside it."""
    shared = shared_by(run.trainer) if published != whole else None
    name = "" if shared is None else shared.published(as_held(shared.adapters, [run.engine]))
    return published if name == published else whole


def _saved(folder: RunFolder) -> dict[int, Path]:
    return {int(path.name.removeprefix("step-")): path for path in checkpoint.listed(folder.checkpoints)}


def _fingerprint_of(run: Run, saved: Path, names: set[str]) -> str:
    """Of a checkpoint's weights; tied ones are stored once, so those the trainer does not name are left out."""
    weights = {
        name: tensor for file in sorted(saved.glob("model*.safetensors")) for name, tensor in load_file(file).items()
    }
    return fingerprint(as_held(weights, [run.engine])) if set(weights) == names else ""
