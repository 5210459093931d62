"""Folders whose experts are stored in four bits (MXFP4), as gpt-oss is published: they are read as plain numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.models.loading.check_folder import check_model_folder
from strop.models.loading.load_weights import skeleton
from strop.models.model import load_model
from strop.pocket.tokenizer import save_tokenizer
from strop.training.trainers.torch import TorchTrainer
from tests.models.state_models import save_state_model

_VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def packed(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Blocks and scales of experts [E, in, out], and what these are worth."""
    groups = weight.transpose(1, 2).reshape(len(weight), weight.shape[2], -1, 32)
    exponent = (groups.abs().amax(-1, keepdim=True) / 6).clamp_min(1e-20).log2().ceil()
    scaled = groups / exponent.exp2()
    code = (scaled.abs().unsqueeze(-1) - _VALUES).abs().argmin(-1)
    worth = (_VALUES[code] * scaled.sign() * exponent.exp2()).flatten(2).transpose(1, 2)
    code = (code + 8 * (scaled < 0)).to(torch.uint8)
    return code[..., 0::2] | code[..., 1::2] << 4, (exponent.squeeze(-1) + 127).to(torch.uint8), worth


def save_in_four_bits(folder: Path) -> dict[str, Tensor]:
    """A tiny gpt-oss; returns its experts' weights."""
    save_state_model(folder, "gpt_oss", hidden_size=64, intermediate_size=64)
    save_tokenizer(folder, 512)
    weights, worth = load_file(folder / "model.safetensors"), {}
    for name in [name for name in weights if name.endswith(("gate_up_proj", "down_proj"))]:
        blocks, scales, worth[name] = packed(weights.pop(name).float())
        weights |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
    save_file(
        {name: each.contiguous() for name, each in weights.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    (folder / "config.json").write_text(json.dumps(config))
    return worth


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_experts_in_four_bits_are_read_exactly(tmp_path: Path, dtype: torch.dtype) -> None:
    worth = save_in_four_bits(tmp_path)
    check_model_folder(tmp_path)
    model = load_model(tmp_path, dtype)
    for name, expected in worth.items():
        found = model.get_parameter(name)
        assert found.dtype == dtype and torch.equal(found.detach().float(), expected)
    assert not hasattr(model.config, "quantization_config")
    assert dict(skeleton(tmp_path, dtype).named_parameters()).keys() == dict(model.named_parameters()).keys()


def test_what_is_trained_of_them_is_saved_as_plain_numbers(tmp_path: Path) -> None:
    worth = save_in_four_bits(tmp_path / "model")
    trainer = TorchTrainer()
    trainer.open(tmp_path / "model", 0)
    trainer.save(tmp_path / "saved")
    assert "quantization_config" not in json.loads((tmp_path / "saved/config.json").read_text())
    again = load_model(tmp_path / "saved")
    assert all(torch.equal(again.get_parameter(name), each) for name, each in worth.items())
