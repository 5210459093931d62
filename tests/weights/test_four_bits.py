"""Adapters beside weights in four bits: one copy for engine and trainer, named with every version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from strop.errors import ConfigurationError, DeliveryError
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.kernels.nf4 import VALUES
from strop.models.model import load_model, parameters
from strop.training.losses.likelihood import Likelihood
from strop.training.machine.lora import learning
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.weights.channels.memory import Memory
from strop.weights.fingerprint import fingerprint
from tests.tiny_models import save_tiny_model
from tests.training.tiny import random_groups
from tests.weights.test_shared_base_weights import largest_gap, written

OBJECTIVE = Objective((Likelihood(),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"), "qwen2", head_dim=16, eos_token_id=None)


def trainer_of(folder: Path, base: str = "nf4", rank: int = 4) -> TorchTrainer:
    trainer = TorchTrainer(learning_rate=3e-4, lora=rank, fused="on", base=base)
    trainer.open(folder, 0)
    return trainer


def test_engine_and_trainer_read_the_same_four_bits(folder: Path) -> None:
    trainer, channel = trainer_of(folder), Memory()
    engine = PagedEngine(rows=8, device="cpu", dtype="float32", steps=3)
    channel.connect(trainer, [engine])
    engine.open(folder)
    assert trainer._opened is not None and engine._shared is not None
    model, batches = trainer._opened.model, pack(random_groups(), TokenMean(), 0, 100)
    codes = model.get_submodule("model.layers.0.mlp.down_proj").base_layer.codes
    assert codes.dtype == torch.uint8 and engine._model is model

    async def follow() -> None:
        first = await channel.publish(0)
        for step in range(1, 3):
            trainer.step(batches, OBJECTIVE)
            version = await channel.publish(step)
            assert largest_gap(trainer, await written(engine)) < 1e-5
        assert version.fingerprint != first.fingerprint
        with torch.no_grad():  # nobody may touch the base: its name is part of every version's
            codes[0, 0] ^= 1
        with pytest.raises(DeliveryError):
            await channel.publish(3)

    asyncio.run(follow())


def test_it_learns_as_beside_plain_weights_of_the_same_value(folder: Path, tmp_path: Path) -> None:
    """Those are written out and read again; gradients, and the policy it began with, must be the same."""
    packed = trainer_of(folder)
    plain_model = load_model(folder)
    for name, each in plain_model.named_parameters():
        each.data.copy_(packed.weights()[name])
        if name.endswith("mlp.up_proj.weight"):
            block = each.detach().reshape(-1, 64)[0]
            shares = set((block / block.abs().max()).tolist())
            assert all(min(abs(share - value) for value in VALUES) < 1e-6 for share in shares)
    plain_model.save_pretrained(tmp_path)
    plain = trainer_of(tmp_path, "plain")
    batches = pack(random_groups(), TokenMean(), 0, 100)
    for _ in range(2):  # B begins as nothing, and with it the gradient of A
        ours, theirs = (each.gradient(batches, OBJECTIVE) for each in (packed, plain))
        assert set(ours) == set(theirs)
        for name, each in ours.items():
            torch.testing.assert_close(each, theirs[name], rtol=1e-4, atol=1e-6)
        for each_trainer in (packed, plain):
            each_trainer.step(batches, OBJECTIVE)
    found = []
    for each_trainer in (packed, plain):
        each_trainer.annotate(batches, frozenset({Logprobs("reference")}))
        found.append(batches[0].logprobs["reference"])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_saved_whole_and_resumed_to_the_same_bits(folder: Path, tmp_path: Path) -> None:
    batches = pack(random_groups(), TokenMean(), 0, 100)
    straight, first, second = (trainer_of(folder) for _ in range(3))
    expected = [straight.step(batches, OBJECTIVE) for _ in range(3)][2:]
    for _ in range(2):
        first.step(batches, OBJECTIVE)
    first.save(tmp_path)
    merged = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert fingerprint(parameters(merged)) == fingerprint(first.weights())
    second.resume(tmp_path)
    assert [second.step(batches, OBJECTIVE)] == expected
    assert fingerprint(second.weights()) == fingerprint(straight.weights())


def test_one_copy_for_several_policies_of_the_same_kind(folder: Path) -> None:
    lender, alike, other = (
        trainer_of(folder),
        *(TorchTrainer(lora=4, fused="on", base=base) for base in ("nf4", "plain")),
    )
    shared = lender.lend()
    assert alike.borrow(shared) and not other.borrow(shared)
    alike.open(folder, 1)
    assert lender._opened is not None and alike._opened is not None
    first, second = (dict(each._opened.model.named_parameters()) for each in (lender, alike))  # type: ignore[union-attr]
    assert {name for name in first if first[name] is not second[name]} == set(learning(lender._opened.model))


def test_what_cannot_be_held_in_four_bits_is_refused_before_loading(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be held in 'nf3'.*nf4"):
        TorchTrainer(lora=4, base="nf3")
    with pytest.raises(ConfigurationError, match='base="nf4" holds weights that do not learn: set lora'):
        TorchTrainer(base="nf4")
    odd = save_tiny_model(tmp_path, "llama", intermediate_size=25)
    with pytest.raises(ConfigurationError, match=r"share scales by 64, of which .*mlp.*has no whole number"):
        trainer_of(odd)
    with pytest.raises(ConfigurationError, match='fused="off" switched off'):
        TorchTrainer(lora=4, base="nf4", fused="off").open(folder, 0)
