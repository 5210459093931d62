"""Folders with a picture tower train on text: the tower is kept, stays as it was, and is written back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from strop.errors import ModelError
from strop.generate.templates.chat_template import Template
from strop.models.layers.eight_bit_linear import outline
from strop.models.model import load_model
from strop.models.optimizers.low_memory_adamw import FLOAT32, HOLDINGS
from strop.training.losses.likelihood import Likelihood
from strop.training.machine.memory import bytes_needed
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.trainers.torch import TorchTrainer
from strop.types import Sampling
from tests.generate.engines.asking import asked, opened, prompts_of, worst_difference
from tests.models.tower_models import PARTS, PLACEHOLDER, load_tower_reference, save_tower_model
from tests.training.tiny import random_groups

OBJECTIVE = Objective((Likelihood(),))
_TOWER = re.compile("vision|visual|projector|connector|embed_vision")


@pytest.mark.parametrize("family", PARTS)
def test_text_is_right_and_towers_come_out_bit_for_bit(tmp_path: Path, family: str) -> None:
    folder = save_tower_model(tmp_path / "model", family)
    engine, reference = opened(folder), load_tower_reference(folder)
    prompts = [np.where(each >= PLACEHOLDER, each - 10, each) for each in prompts_of([20, 9])]
    for prompt, written in zip(prompts, asked(engine, prompts, Sampling(max_tokens=12)), strict=True):
        assert worst_difference(reference, prompt, written) < 1e-5
    before = load_file(folder / "model.safetensors")
    tower = {name for name in before if _TOWER.search(name)}
    for lora in (0, 2):
        trainer = TorchTrainer(learning_rate=1e-2, weight_decay=0.1, lora=lora)
        trainer.open(folder, 0)
        trainer.step(pack(random_groups(), TokenMean(), 0, 100), OBJECTIVE)
        out = tmp_path / f"out{lora}"
        out.mkdir()
        trainer.save(out)
        after = load_file(out / "model.safetensors")
        moved = {name for name in before if not torch.equal(before[name], after[name])}
        assert after.keys() == before.keys() and moved and tower and not moved & tower, (lora, moved & tower)
        if lora:
            targets = json.loads((out / "adapter" / "adapter_config.json").read_text())["target_modules"]
            modules = {name for name, each in reference.named_modules() if isinstance(each, torch.nn.Linear)}
            hit = {name for name in modules if re.fullmatch(targets, name)}
            assert hit and not any(_TOWER.search(name) for name in hit)
            load_model(out)


def test_planning_and_templates_know_composite_configurations(tmp_path: Path) -> None:
    folder = save_tower_model(tmp_path, "qwen2_5_vl")
    shape = outline(folder)
    needed = bytes_needed(shape, HOLDINGS[FLOAT32], 64, False, False, 64)
    learning = sum(each.numel() for name, each in shape.named_parameters() if not _TOWER.search(name))
    assert needed["gradients"] == 4 * learning
    assert Template.load(folder).end == 1


def test_tensors_that_a_model_has_no_place_for_are_named(tmp_path: Path) -> None:
    folder = save_tower_model(tmp_path, "idefics3")
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"model.more.weight": torch.ones(2)}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 without a place in the model: model.more.weight.*write a model without"):
        load_model(folder)
