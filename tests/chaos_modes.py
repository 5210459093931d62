"""The kinds of runs that chaos kills: how each is made, and what is promised of one that was killed and resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from strop.generate.agents.chat import Chat
from strop.launch.experiments.retrain import retrain
from strop.placement.place import place
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.weights.fingerprint import fingerprint
from tests.parts import EvenLength, LongerIsBetter

STEPS = 30  # of runs that are placed; others are slower, or shorter
LAG = 2
_SIZES: dict[str, Any] = {
    "groups_per_step": 3, "group_size": 4, "max_tokens": 12, "heldout_tasks": 4, "heldout_every": 0,
    "checkpoint_every": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Mode:
    """One kind of runs."""

    make: Callable[[Path], Run]
    steps: int
    promise: str  # bits: those of a run that nobody killed; ledger: trained again from it, the same; rollouts: the same
    kills_all: bool = False  # engines, ranks and reward workers too: a run on places survives them
    trains_again: bool = False  # a buffer draws rollouts more than once


def _grpo(model: Path, steps: int, **values: Any) -> Run:
    run = build(recipe_named("grpo"), {"model": str(model), "steps": steps, **_SIZES, **values})
    return replace(run, rewards=(LongerIsBetter(), EvenLength()))


def _placed(model: Path, where: str, ranks: int = 1) -> Run:
    return place(_grpo(model, STEPS, lag=LAG, ranks=ranks), where, 1)


def _tools(model: Path) -> Run:
    """Python cells and a store behind tool calls, by the bundled model, which writes such calls."""
    sizes = {"env": "notebook:1+keyvalue:2", "max_tokens": 48, "group_size": 2}
    return replace(_grpo(Path("pocket"), 12, **sizes), model="pocket", agent=Chat(4))


def _recipe(name: str, steps: int, **values: Any) -> Callable[[Path], Run]:
    def made(model: Path) -> Run:
        run = build(recipe_named(name), {**_SIZES, "steps": steps, "heldout_tasks": 2, **values})
        return replace(run, checkpoint_every=2) if run.model == "pocket" else run

    return made


def _replay(model: Path) -> Run:
    sizes = {"model": str(model), "steps": STEPS, **_SIZES, "reincarnation": 20, "learning_rate": 1e-3}
    return replace(build(recipe_named("remix"), sizes), rewards=(EvenLength(),))


def _diffusion(model: Path) -> Run:
    sizes = {**_SIZES, "model": str(model), "steps": 12, "max_tokens": 8, "group_size": 2, "shown": 3}
    return replace(build(recipe_named("d1"), sizes), rewards=(EvenLength(),))


MODES = {
    "synchronous": Mode(lambda model: _grpo(model, STEPS), STEPS, "bits"),
    "process": Mode(lambda model: _placed(model, "process"), STEPS, "ledger", kills_all=True),
    "ranks": Mode(lambda model: _placed(model, "process", 2), STEPS, "ledger", kills_all=True),
    "ray": Mode(lambda model: _placed(model, "ray"), STEPS, "ledger", kills_all=True),
    "tools": Mode(_tools, 12, "bits"),
    "replay": Mode(_replay, STEPS, "bits", trains_again=True),
    "memory": Mode(_recipe("core", 12, most=1, group_size=2, max_tokens=48), 12, "bits"),
    "diffusion": Mode(_diffusion, 12, "bits"),
    "programs": Mode(_recipe("polar", 8, env="keyvalue:2", isolation="process", max_tokens=48), 8, "rollouts"),
}


def can_run(name: str) -> bool:
    """Whether what the mode needs is installed."""
    needed = {"ray": "ray", "programs": "uvicorn"}.get(name)
    return needed is None or find_spec(needed) is not None


def traces(path: Path, promise: str) -> object:
    """What of a run no kill may change; where the ledger is what is promised, that it can be trained again."""
    folder = RunFolder(path)
    if promise == "ledger":
        made = retrain(path)
        return all(each.is_equal for each in made)
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        if promise == "rollouts":
            turns = [rollout.turns for group in ledger.history() for rollout in group.rollouts]
            return [[turn.tokens.tolist() for turn in each] for each in turns if each]
        return _weights(folder), folder.metrics.read_text(), ledger.digest()
    finally:
        ledger.close()


def _weights(folder: RunFolder) -> str:
    """Of the model and of the optimizer."""
    from safetensors.torch import load_file

    last = checkpoint.listed(folder.checkpoints)[-1]
    files = sorted(last.rglob("*.safetensors"))
    return fingerprint({f"{file.relative_to(last)}/{k}": v for file in files for k, v in load_file(file).items()})
