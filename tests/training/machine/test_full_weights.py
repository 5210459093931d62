"""Whole weights in 10 or 6 bytes learn as in 18, within a stated bound, and a run repeats and resumes to the bit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

from strop.errors import CheckpointError, ConfigurationError
from strop.models.optimizers.adamw import Optimizer
from strop.models.optimizers.low_memory_adamw import HOLDINGS, FrugalOptimizer, narrowed
from strop.models.optimizers.low_precision import joined
from strop.training.losses.likelihood import Likelihood
from strop.training.machine.full_weights import choose
from strop.training.machine.memory import Room
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.weights.fingerprint import fingerprint
from tests.training.tiny import random_groups, save_gpt2, save_llama

OBJECTIVE, GIB = Objective((Likelihood(),)), 2**30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"))


def opened(folder: Path, held: int, seed: int = 0) -> TorchTrainer:
    trainer = TorchTrainer(learning_rate=1e-3, weight_decay=0.1, fused="on", bytes_per_weight=held)
    trainer.open(folder, seed)
    return trainer


def masters(trainer: TorchTrainer) -> dict[str, Tensor]:
    """Weights as wide as the optimizer knows them."""
    assert trainer._opened is not None
    optimizer, found = trainer._opened.optimizer, trainer.weights()
    rests = optimizer.moments()
    return {
        name: joined(each.reshape(-1), rests[f"{name}/weight.rest"]).view_as(each)
        if f"{name}/weight.rest" in rests
        else each.float()
        for name, each in found.items()
    }


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    return math.sqrt(sum(float((one[name] - other[name]).square().sum()) for name in one))


def test_fifty_steps_lead_to_the_same_place(folder: Path) -> None:
    """How far weights are apart, as a share of the way that they went in float32, and how far the curves of the loss
    are at most: 3 % and 0.01 with 10 bytes, 30 % and 0.05 with 6."""
    batches = pack(random_groups(), TokenMean(), 0, 60)
    plain, split, small = (opened(folder, held) for held in (18, 10, 6))
    # gradients that are added by chance are added one after the other
    assert [each._opened.at_once.is_wanted for each in (plain, split, small)] == [True, False, False]  # type: ignore[union-attr]
    before = {name: each.clone() for name, each in masters(plain).items()}
    curves = [[trainer.step(batches, OBJECTIVE)["loss"] for _ in range(50)] for trainer in (plain, split, small)]
    assert curves[0][-1] < 0.5 * curves[0][0]
    way = distance(masters(plain), before)
    for trainer, curve, apart, loss_apart in ((split, curves[1], 0.03, 0.01), (small, curves[2], 0.3, 0.05)):
        assert max(abs(one - other) for one, other in zip(curves[0], curve, strict=True)) < loss_apart
        assert distance(masters(trainer), masters(plain)) < apart * way
        assert {each.dtype for each in trainer.weights().values() if each.dim() > 1} == {torch.bfloat16}
        assert trainer.weights()["model.norm.weight"].dtype == torch.float32


def test_one_step_by_hand() -> None:
    """Of Adam: the first step is the learning rate in the gradient's direction, after weights decayed."""
    layer = torch.nn.Linear(2, 2, bias=False)
    layer.weight.data = torch.tensor([[1.0, -1.0], [0.5, 0.25]])
    rests = narrowed(layer, HOLDINGS[10])
    optimizer = FrugalOptimizer(dict(layer.named_parameters()), (0.9, 0.999), 0.1, 1.0, rests, 4, 0)
    layer.weight.grad = torch.tensor([[3.0, 0.0], [0.0, 4.0]], dtype=torch.bfloat16)
    assert float(optimizer.gradient_norm()) == 5.0
    optimizer.step(0.01, 5.0)
    found = joined(layer.weight.detach().view(-1), rests["weight"])
    torch.testing.assert_close(found, torch.tensor([0.999 - 0.01, -0.999, 0.4995, 0.24975 - 0.01]), rtol=1e-6, atol=0)
    assert float(optimizer.moments()["weight/first."][0]) == pytest.approx(0.1 * 3 / 5, rel=2**-7)  # clipped to norm 1
    assert float(optimizer.moments()["weight/root."][3]) == pytest.approx(0.001**0.5 * 4 / 5, rel=2**-7)


@pytest.mark.parametrize("held", [10, 6])
def test_a_matrix_moves_alike_in_pieces(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,300 numbers at once, and 512 at a time; moments are those of the first step, as well as they can be held."""
    stream, found = torch.Generator().manual_seed(0), []
    start, pull = (torch.randn(26, 50, generator=stream).to(torch.bfloat16).float() for _ in range(2))
    for size in (1 << 24, 512):
        monkeypatch.setattr("strop.models.optimizers.low_memory_adamw._PIECE", size)
        layer = torch.nn.Linear(50, 26, bias=False)
        layer.weight.data = start.clone()
        rests, holding = narrowed(layer, HOLDINGS[held]), HOLDINGS[held]
        betas = (0.9, 0.999)
        optimizer = FrugalOptimizer(dict(layer.named_parameters()), betas, 0.0, None, rests, holding.moments, 0)
        layer.weight.grad = pull.to(torch.bfloat16)
        optimizer.step(0.25, 1.0)
        of = optimizer._moved["weight"]
        first, root = (each.read(slice(0, 1300)).view(26, 50) for each in (of.first, of.root))
        torch.testing.assert_close(first, 0.1 * pull, rtol=1 / 8, atol=1e-5)
        torch.testing.assert_close(root, 0.001**0.5 * pull.abs(), rtol=1 / 8, atol=1e-5)
        found.append(of.weight.read(slice(0, 1300)).view(26, 50))
        torch.testing.assert_close(found[-1], start - 0.25 * pull.sign(), rtol=0, atol=0.02)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0 if held == 10 else 0.02)


def test_gradients_of_many_micro_batches_add_up() -> None:
    """To the nearest, the sum of equal ones would stand still at 256 times the first."""
    sums = []
    for seed in (0, 0, 1):
        layer = torch.nn.Linear(64, 64, bias=False)
        pull = torch.rand(64, 64, generator=torch.Generator().manual_seed(0)) + 0.5
        rests = narrowed(layer, HOLDINGS[10])
        optimizer = FrugalOptimizer(dict(layer.named_parameters()), (0.9, 0.999), 0.0, None, rests, 4, seed)
        for count in (3, 600):  # a step begins anew
            optimizer.zero_grad()
            for _ in range(count):
                (layer.weight * pull.to(torch.bfloat16)).sum().backward()
        assert layer.weight.grad is not None and layer.weight.grad.dtype == torch.bfloat16
        sums.append(layer.weight.grad.clone())
    shares = sums[0].double() / 600 / pull.to(torch.bfloat16)
    assert float(shares.mean()) == pytest.approx(1, abs=2e-3) and float((shares - 1).abs().max()) < 0.2
    assert torch.equal(sums[0], sums[1]) and not torch.equal(sums[0], sums[2])


def test_vectors_move_as_torch_moves_them() -> None:
    one, other = (torch.nn.Parameter(torch.arange(6.0)) for _ in range(2))
    plain = Optimizer({"bias": one}, (0.9, 0.999), 0.1, 0.5)
    frugal = FrugalOptimizer({"bias": other}, (0.9, 0.999), 0.1, 0.5, {}, 2, 0)
    for scale in (1.0, 0.3, 7.0):
        one.grad, other.grad = (scale * torch.tensor([1.0, -2, 3, 0.5, 0, -1]) for _ in range(2))
        plain.step(1e-2, float(plain.gradient_norm()))
        version = other._version
        frugal.step_unless_broken(1e-2, frugal.gradient_norm(), torch.ones(1))
        assert other._version > version  # copies of weights can tell that they are old
    torch.testing.assert_close(one, other)
    before = other.detach().clone()
    other.grad = torch.full((6,), float("nan"))
    frugal.step_unless_broken(1e-2, frugal.gradient_norm(), torch.ones(1))
    assert torch.equal(other, before)


@pytest.mark.parametrize("held", [10, 6])
def test_repeated_and_resumed_to_the_same_bits(folder: Path, held: int, tmp_path: Path) -> None:
    """Who resumes opens with room for all of float32, and goes on as the checkpoint was held."""
    batches = pack(random_groups(), TokenMean(), 0, 100)
    straight, first, other, second = (
        opened(folder, each, seed) for each, seed in ((held, 0), (held, 0), (held, 1), (0, 0))
    )
    expected = [straight.step(batches, OBJECTIVE) for _ in range(4)][2:]
    for trainer in (first, other):
        for _ in range(2):
            trainer.step(batches, OBJECTIVE)
    if held == 6:
        assert fingerprint(other.weights()) != fingerprint(first.weights())  # another seed, another probability
    first.save(tmp_path)
    second.resume(tmp_path)
    assert [second.step(batches, OBJECTIVE) for _ in range(2)] == expected
    assert fingerprint(second.weights()) == fingerprint(straight.weights())
    assert fingerprint(masters(second)) == fingerprint(masters(straight))
    saved = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert torch.equal(saved.lm_head.weight, first.weights()["lm_head.weight"].float())
    (tmp_path / "trainer.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="cannot read the optimizer state"):
        second.resume(tmp_path)


def test_what_it_began_with_is_a_reference_in_bfloat16(folder: Path) -> None:
    trainer, plain = opened(folder, 6), opened(folder, 18)
    found = []
    for each in (trainer, plain):
        batches = pack(random_groups(), TokenMean(), 0, 100)
        each.annotate(batches, frozenset({Logprobs("reference"), Logprobs("proximal")}))
        found.append(batches[0].logprobs)
    torch.testing.assert_close(found[0]["reference"], found[0]["proximal"], rtol=1e-5, atol=1e-5)
    assert float((found[0]["reference"] - found[1]["reference"]).abs().mean()) < 0.05


def test_what_has_no_quick_path_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"18, 10 or 6 bytes for a weight, not 8 .*moments in 8 bits"):
        TorchTrainer(bytes_per_weight=8)
    with pytest.warns(UserWarning, match="slow path"), pytest.raises(ConfigurationError, match="GPT2LMHeadModel has"):
        opened(save_gpt2(tmp_path), 10)
    with pytest.raises(ConfigurationError, match='fused="off" does without: use bytes_per_weight=18'):
        TorchTrainer(fused="off", bytes_per_weight=6).open(folder, 0)


def of_7b() -> Any:
    with torch.device("meta"):
        return Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
                num_attention_heads=28, num_key_value_heads=4, tie_word_embeddings=False,
            )
        )  # fmt: skip


def test_the_plan_takes_the_most_bytes_that_fit() -> None:
    """7.6 billion weights: 18 bytes are 128 GiB, 10 are 71 and 6 are 43, without activations."""
    model = of_7b()
    trainer = TorchTrainer(device="cuda", max_tokens=8192, chunk=1024)

    def chosen(free: int, others: int = 0) -> int:
        return choose(model, free * GIB, trainer, Room(0, 2048, others)).total

    assert [chosen(free) for free in (200, 139 - 14 - 20, 75)] == [18, 10, 6]
    assert chosen(139 - 14 - 20, others=2) == 6  # a reference and a teacher, of 14 GiB each
    trainer = TorchTrainer(device="cuda", max_tokens=8192, chunk=1024, matmul_precision="fp8")
    assert chosen(75) == 6  # whose kernels read narrow weights too
    trainer = TorchTrainer(device="cuda", max_tokens=8192, chunk=1024)
    assert chosen(10) == 6  # refused once everybody else has taken his part
