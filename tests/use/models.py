"""Models and former runs that cells begin with, made once for all in build/use/."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from strop.control.samplers.few import Few
from strop.launch.running.launch import launch
from strop.models.loading.model_names import model_folder
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.run_folder import RunFolder
from strop.training.trainers.torch import TorchTrainer
from tests.use.situations import BY_NUMBER, bring
from tests.use.user_models import save_other_model, save_own_model

BUILD = Path(__file__).parents[2] / "build" / "use"
_SMALL = Setting(steps=3, groups_per_step=4, group_size=4, max_tokens=48, heldout_tasks=1, heldout_every=0)


def made() -> dict[str, str]:
    """Every model by name: `other`, `coder`, and what a record calls MODEL, RUN, PILOT and CODER for each family."""
    found = {"other": str(_once("other", save_other_model)), "own": str(_once("own", save_own_model))}
    found["coder"] = str(_coder())
    for family in ("own", "other"):
        model = found[family]
        found[f"{family} MODEL"] = str(_once(f"{family}-model", partial(_a_little_off, model)))
        found[f"{family} RUN"] = str(_run(f"{family}-run", model, False))
        found[f"{family} PILOT"] = str(_run(f"{family}-pilot", model, True))
        found[f"{family} CODER"] = found["coder"]
    return found


def _once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made whole or not at all."""
    folder, begun = BUILD / name, BUILD / f"{name}.begun"
    if not folder.is_dir():
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir(parents=True)
        make(begun)
        begun.rename(folder)
    return folder


def _a_little_off(model: str, folder: Path) -> None:
    """A teacher whose opinion differs."""
    loaded = AutoModelForCausalLM.from_pretrained(model_folder(model))
    stream = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in loaded.parameters():
            weights.mul_(1 + 0.05 * torch.randn(weights.shape, generator=stream))
    loaded.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model_folder(model)).save_pretrained(folder)


def _run(name: str, model: str, is_pilot: bool) -> Path:
    """A run on the user's numbers; a pilot tries the same two tasks in every step."""

    def make(folder: Path) -> None:
        bring(BY_NUMBER[1], BUILD / "numbers")
        run: Run = grpo(replace(_SMALL, model=model, env=str(BUILD / "numbers" / "rows.jsonl")))
        if is_pilot:
            run.sampler = Few(run.envs, 2)
        launch(run, folder, "run")

    return _once(name, make) / "run"


def _coder() -> Path:
    """The bundled model after a short supervised run on programs."""

    def make(folder: Path) -> None:
        run = shown(Setting(env="programs:1", heldout_tasks=1), "coder", 16)
        assert run is not None
        run.groups_per_step, run.trainer = 16, TorchTrainer(learning_rate=1e-3)
        launch(run, folder, "run")

    return checkpoint.listed(RunFolder(_once("coder", make) / "run").checkpoints)[-1]
