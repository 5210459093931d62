"""Adapters on the fast path: the loss and gradients of the slow one, over weights that are never copied nor moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from strop.models.layers.attention import Packed
from strop.models.model import hidden_states, load_model, unadapted
from strop.training.machine.forward import Forward
from strop.training.machine.llama import llama_forward
from strop.training.machine.lora import add_adapters, learning, open_adapted
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from tests.training.test_quick import FAMILIES, OBJECTIVE, siblings
from tests.training.tiny import random_groups, save_gpt2, save_llama


def spread(model: Any) -> None:
    """Adapters begin as nothing; these act."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in learning(model).values():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)


def trained(folder: Path, **settings: Any) -> tuple[float, dict[str, Tensor], TorchTrainer]:
    trainer = TorchTrainer(clip_norm=None, chunk=16, lora=4, **settings)
    trainer.open(folder, 0)
    assert trainer._opened is not None
    spread(trainer._opened.model)
    found = trainer.gradient(pack([*siblings(), *random_groups()], TokenMean(), 0, 60), OBJECTIVE)
    return trainer.step(pack(siblings(), TokenMean(), 0, 60), OBJECTIVE)["loss"], found, trainer


@pytest.mark.parametrize("family", ["llama_compiled", "phi3", "olmo2", "qwen2", "qwen3", "gemma3", "mixtral"])
def test_it_is_the_slow_path(family: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(FAMILIES[family]).save_pretrained(tmp_path)
    loss, wanted, _ = trained(tmp_path, fused="off")
    quick, found, trainer = trained(tmp_path, fused="on")
    assert trainer._opened is not None and trainer._opened.forward.fast_path(trainer._opened.model) is not None
    assert quick == pytest.approx(loss, rel=1e-5)
    assert found.keys() == wanted.keys() and len(found) == 2 * 3 * (4 if family in ("phi3", "mixtral") else 7)
    for name, gradient in found.items():
        assert float((gradient - wanted[name]).norm() / wanted[name].norm()) < 1e-5, name
    _, again, _ = trained(tmp_path, fused="on", checkpointing="on")
    assert all(torch.equal(found[name], again[name]) for name in found)


def test_weights_beside_adapters_have_one_copy_and_no_gradient(tmp_path: Path) -> None:
    _, _, trainer = trained(save_llama(tmp_path), fused="on")
    opened = trainer._opened
    assert opened is not None
    quick = opened.forward.fast_path(opened.model)
    assert quick is not None
    memories = {each.untyped_storage().data_ptr() for each in unadapted(opened.model).values()}
    products = [
        each for layer in quick.layers for each in (layer.fused, layer.output, layer.feed.gate_up, layer.feed.down)
    ]
    assert all(each.cast.untyped_storage().data_ptr() in memories for each in products)
    assert {quick.head[0].data_ptr(), quick.embedding[0].data_ptr()} <= memories
    assert all(each.grad is None for name, each in opened.model.named_parameters() if ".lora_" not in name)
    before = AutoModelForCausalLM.from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(each, before[name]) for name, each in unadapted(opened.model).items())
    assert all(each.dtype == torch.float32 for each in learning(opened.model).values())


def test_the_reference_is_the_same_weights_without_adapters(tmp_path: Path) -> None:
    _, _, trainer = trained(save_llama(tmp_path), fused="on")
    plain, found = TorchTrainer(chunk=16), []
    plain.open(tmp_path, 0)
    for each, policy in ((trainer, "reference"), (plain, "proximal"), (trainer, "proximal")):
        batches = pack(siblings(), TokenMean(), 0, 60)
        each.annotate(batches, frozenset({Logprobs(policy)}))
        found.append(torch.cat([batch.logprobs[policy] for batch in batches]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-5)
    assert float((found[0] - found[2]).abs().max()) > 0.1
    assert trainer._opened is not None
    assert trainer._opened.frozen["reference"].model is trainer._opened.model


def test_in_half_precision_the_weights_are_held_so_and_adapters_are_not(tmp_path: Path) -> None:
    """As on a GPU: no float32 copy of any weight, and the states of the model with adapters within rounding."""
    model = load_model(save_llama(tmp_path), torch.bfloat16)
    add_adapters(model, 4, 0)
    spread(model)
    assert {each.dtype for each in learning(model).values()} == {torch.float32}
    quick = llama_forward(model, torch.bfloat16, says_why_not=True)
    assert quick is not None and quick.layers[0].fused.cast.dtype == torch.bfloat16
    tokens, positions = torch.arange(9), torch.arange(9)
    found = quick.hidden_states(tokens, positions, Packed([9], "cpu"))
    with torch.no_grad():
        exact = hidden_states(model.float(), tokens, positions, Packed([9], "cpu"))
    assert float((found.detach().float() - exact).norm() / exact.norm()) < 0.02
    (found.float() ** 2).sum().backward()  # type: ignore[no-untyped-call]
    assert all(each.grad is not None and each.grad.dtype == torch.float32 for each in learning(model).values())


def test_other_comparison_groups_keep_float32_weights(tmp_path: Path) -> None:
    """Their products run under autocast, which rounds at places of its own."""
    with pytest.warns(UserWarning, match="slow path"):
        model = open_adapted(save_gpt2(tmp_path), 4, 0, Forward("cpu", "bfloat16", 16, "on"))
    assert {each.dtype for each in model.parameters()} == {torch.float32}
