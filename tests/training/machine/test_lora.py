"""Adapters learn, everybody else sees whole weights, and what is saved can be read by peft and by anybody."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, DeepseekV3Config

from strop.errors import CheckpointError, ConfigurationError
from strop.models.model import parameters
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from strop.weights.fingerprint import fingerprint
from tests.tiny_models import save_tiny_model
from tests.training.tiny import random_groups, save_llama

peft = pytest.importorskip("peft")
OBJECTIVE = Objective((Likelihood(),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"), is_tied=True)


def opened(folder: Path, rank: int = 4) -> TorchTrainer:
    trainer = TorchTrainer(learning_rate=1e-3, lora=rank)
    trainer.open(folder, 0)
    return trainer


def test_adapters_begin_as_nothing_and_learn(folder: Path) -> None:
    whole, trainer = TorchTrainer(), opened(folder)
    whole.open(folder, 0)
    before = whole.weights()
    assert fingerprint(trainer.weights()) == fingerprint(before)
    batches = pack(random_groups(), TokenMean(), 0, 100)
    steps = [trainer.step(batches, OBJECTIVE) for _ in range(12)]
    assert steps[-1]["loss"] < steps[0]["loss"] - 0.5
    assert steps[0]["learning_rate"] == pytest.approx(1e-2)  # ten times that of whole weights
    moved = {name for name, tensor in trainer.weights().items() if not torch.equal(tensor, before[name])}
    assert moved == {name for name in before if name.endswith("proj.weight")}  # not embeddings, not norms
    assert trainer._opened is not None
    assert len(trainer._opened.optimizer.parameters) == 2 * len(moved)


def test_what_engines_get_is_what_was_trained(folder: Path) -> None:
    """The merged weights in a plain model give the logprobs of the adapted one."""
    trainer, plain = opened(folder), TorchTrainer()
    batches = pack(random_groups(), TokenMean(), 0, 100)
    for _ in range(3):
        trainer.step(batches, OBJECTIVE)
    plain.open(folder, 0)
    assert plain._opened is not None
    with torch.no_grad():
        for name, parameter in plain._opened.model.named_parameters():
            parameter.copy_(trainer.weights()[name])
    found = []
    for each in (trainer, plain):
        each.annotate(batches, frozenset({Logprobs("proximal")}))
        found.append(batches[0].logprobs["proximal"])
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_saved_for_everybody_and_for_peft(folder: Path, tmp_path: Path) -> None:
    trainer = opened(folder)
    batches = pack(random_groups(), TokenMean(), 0, 100)
    trainer.step(batches, OBJECTIVE)
    trainer.save(tmp_path)
    merged = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert fingerprint(parameters(merged)) == fingerprint(trainer.weights())
    adapted = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder), tmp_path / "adapter").eval()
    tokens = torch.arange(7).unsqueeze(0)
    torch.testing.assert_close(adapted(tokens).logits, merged(tokens).logits, rtol=1e-4, atol=1e-5)


def test_resumed_to_the_same_bits(folder: Path, tmp_path: Path) -> None:
    batches = pack(random_groups(), TokenMean(), 0, 100)
    straight, first, second = (opened(folder) for _ in range(3))
    expected = [straight.step(batches, OBJECTIVE) for _ in range(4)][2:]
    for _ in range(2):
        first.step(batches, OBJECTIVE)
    first.save(tmp_path)
    second.resume(tmp_path)
    assert [second.step(batches, OBJECTIVE) for _ in range(2)] == expected
    assert fingerprint(second.weights()) == fingerprint(straight.weights())
    with pytest.raises(
        CheckpointError, match=r"not of this model: 28 tensors, need 28; .*lora_A.weight is \(4, 48\), need \(2, 48\)"
    ):
        opened(folder, rank=2).resume(tmp_path)


def test_ranks_have_no_adapters() -> None:
    with pytest.raises(ConfigurationError, match="lora=0, got 4"):
        Ranks(TorchTrainer(lora=4))
    with pytest.raises(ConfigurationError, match="set bytes_per_weight=18, or 0, got 6"):
        Ranks(TorchTrainer(bytes_per_weight=6))


def test_gpt2_has_adapters_although_its_layers_are_not_linear(tmp_path: Path) -> None:
    """Its Conv1D layers keep their weights the other way round; merged weights must say what the adapted model says."""
    folder = save_tiny_model(tmp_path / "gpt2", "gpt2", spread=1.0)
    trainer = opened(folder)
    before = trainer.weights()
    batches = pack(random_groups(), TokenMean(), 0, 100)
    for _ in range(3):
        trainer.step(batches, OBJECTIVE)
    moved = {name for name, tensor in trainer.weights().items() if not torch.equal(tensor, before[name])}
    assert moved == {name for name in before if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))}
    (tmp_path / "saved").mkdir()
    trainer.save(tmp_path / "saved")
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    base = AutoModelForCausalLM.from_pretrained(folder)
    adapted = peft.PeftModel.from_pretrained(base, tmp_path / "saved" / "adapter").eval()
    tokens = torch.arange(7).unsqueeze(0)
    torch.testing.assert_close(adapted(tokens).logits, merged(tokens).logits, rtol=1e-4, atol=1e-5)


def test_a_negative_rank_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="need lora >= 1, or 0 for none, got -1"):
        TorchTrainer(lora=-1)


def test_experts_stay_as_they_are_beside_adapters_of_everything_else(tmp_path: Path) -> None:
    sizes = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "moe_intermediate_size": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4}
    ranks = {"q_lora_rank": 8, "kv_lora_rank": 8, "v_head_dim": 4, "num_hidden_layers": 2, "first_k_dense_replace": 1}
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
    config = DeepseekV3Config(**sizes, **heads, **ranks, **experts, bos_token_id=0, eos_token_id=1)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    trainer = opened(tmp_path)
    before = {name: tensor.clone() for name, tensor in trainer.weights().items()}
    batches = pack(random_groups(), TokenMean(), 0, 100)
    losses = [trainer.step(batches, OBJECTIVE)["loss"] for _ in range(4)]
    assert losses[-1] < losses[0]
    moved = {name for name, tensor in trainer.weights().items() if not torch.equal(tensor, before[name])}
    assert not any(".experts." in name or name.endswith("gate.weight") for name in moved)
    assert any("self_attn" in name for name in moved) and any("shared_experts" in name for name in moved)
