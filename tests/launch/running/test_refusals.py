"""What cannot work is refused in a sentence before a run folder exists, and names stay within the runs folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, FalconConfig

from strop.errors import ConfigurationError, ModelError, StropError
from strop.launch.running.launch import launch
from strop.observe.trackers.wandb import Wandb
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.run_folder import fresh_folder
from strop.types import Sampling
from tests.tiny_models import save_pocket_like


def small(model: Path, **setting: Any) -> Run:
    sizes = {"steps": 1, "groups_per_step": 2, "group_size": 2, "max_tokens": 4, "heldout_tasks": 2}
    return grpo(Setting(model=str(model), **sizes | setting))


def refused(run: Run, root: Path, said: str, name: str = "run") -> None:
    with pytest.raises((ConfigurationError, ModelError), match=said):
        launch(run, root, name)
    assert not root.exists() or not list(root.iterdir())


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"device": "tpu"}, "there is no device 'tpu': cpu, cuda, or cuda:1"),
        ({"device": "cuda:99"}, "no GPU that this torch can use|no device 'cuda:99': this machine has"),
        ({"seed": 99999999999999999999}, r"need 0 <= seed < 2\*\*63, got 9999"),
        ({"threads": 100_000}, r"threads=100000 is too many for \d+ processors: at most"),
    ],
)
def test_settings(model: Path, tmp_path: Path, setting: dict[str, Any], said: str) -> None:
    refused(small(model, **setting), tmp_path / "runs", said)


def test_the_context_top_k_and_trackers(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, root = small(model), tmp_path / "runs"
    refused(replace(run, context=100_000), root, "context=100000 is more than the 512 positions")
    refused(replace(run, sampling=Sampling(top_k=-3, max_tokens=4)), root, "need top_k >= 1, or 0 for no limit, got -3")
    monkeypatch.setattr("strop.observe.trackers.wandb.find_spec", lambda name: None)
    refused(replace(run, trackers=(Wandb(),)), root, r"not installed: pip install 'strop\[wandb\]'")


def test_numbers_that_are_none(model: Path) -> None:
    with pytest.raises(ConfigurationError, match="finite learning_rate > 0, got inf"):
        small(model, learning_rate=float("inf"))


def test_an_end_token_that_is_none(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path / "model")
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        content |= {"eos_token_id": None} if name != "tokenizer_config.json" else {"eos_token": None}
        (folder / name).write_text(json.dumps(content))
    template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps(content | {"chat_template": template}))
    refused(small(folder), tmp_path / "runs", "end")


def test_an_architecture_that_is_known_to_fail_only_once_it_is_loaded(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    for name in ("config.json", "model.safetensors"):
        (folder / name).unlink()
    kept = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "eos_token_id", "pad_token_id")
    AutoModelForCausalLM.from_config(FalconConfig(**{name: config[name] for name in kept})).save_pretrained(folder)
    refused(small(folder), tmp_path / "runs", "the family falcon does not run")


@pytest.mark.parametrize("name", ["..", ".", "-x", "a/b", ".hidden", "x" * 101, "a b"])
def test_names_that_would_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="a run's name"):
        fresh_folder(tmp_path / "runs", name)
    assert fresh_folder(tmp_path / "runs", "grpo-seed0.1_x").path.parent == tmp_path / "runs"


def test_places_where_nothing_can_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StropError, match=r"no run can be written to .*file/run: Not a directory; see --runs"):
        launch(small(model), tmp_path / "file", "run")
