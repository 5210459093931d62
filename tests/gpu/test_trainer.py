"""Kernels of the trainer against the same functions in plain torch and higher precision, on random inputs.

On a GPU, or in Triton's own interpreter: `TRITON_INTERPRET=1 pytest tests/gpu`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from strop.kernels import attention, logprobs, norm, swiglu
from strop.kernels.linear import add_product, weight_gradient
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group
from tests.gpu.triton_device import IS_INTERPRETED, triton_device
from tests.training.tiny import make_rollout, make_turn

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton import attention as triton_attention  # noqa: E402
from strop.kernels.triton import head as triton_head  # noqa: E402
from strop.kernels.triton import norm as triton_norm  # noqa: E402
from strop.kernels.triton import rotary as triton_rotary  # noqa: E402
from strop.kernels.triton import swiglu as triton_swiglu  # noqa: E402
from strop.kernels.triton.attention_back import attend_back  # noqa: E402

TYPES = [torch.float32, torch.bfloat16]
NARROW = torch.float16 if IS_INTERPRETED else torch.bfloat16  # whose products the interpreter knows
# of rounding once or twice; the interpreter does not round, it cuts
BOUND = {torch.float32: 1e-5, torch.bfloat16: 1e-2 if IS_INTERPRETED else 6e-3}


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype).to(DEVICE)


def error(found: Tensor, expected: Tensor) -> float:
    """Relative, and NaN where anything is."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def wide(*tensors: Tensor) -> list[Tensor]:
    return [tensor.double() for tensor in tensors]


def save_llama(folder: Path, hidden: int, layers: int, vocabulary: int) -> Path:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=1,
        max_position_embeddings=512,
        initializer_range=0.05,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def groups_of(vocabulary: int) -> list[Group]:
    """Siblings that share a long prompt, and write much."""
    random = np.random.default_rng(0)
    groups = []
    for number in range(3):
        prompt = random.integers(0, vocabulary, 50).tolist()
        turns = [make_turn(prompt, random.integers(0, vocabulary, int(n)).tolist()) for n in (200, 31, 100, 7)]
        rollouts = [make_rollout(f"{number}/{i}", [turn], f"task-{number}", i - 1.5) for i, turn in enumerate(turns)]
        groups.append(Group(number, rollouts[0].task, rollouts))
    return groups


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("has_delta", [True, False])
@pytest.mark.parametrize(("count", "size"), [(37, 576), (5, 96), (3, 2304)])
def test_norm(dtype: torch.dtype, has_delta: bool, count: int, size: int) -> None:
    residual, weight = drawn(count, size), (1 + 0.1 * drawn(size)).to(dtype).float()
    delta = drawn(count, size, dtype=dtype, seed=1) if has_delta else None
    found = triton_norm.forward(residual, delta, weight, 1e-5, dtype)
    given = None if delta is None else delta.double()
    exact = norm.reference_forward(residual.double(), given, weight.double(), 1e-5, torch.float64)
    for one, other in zip(found, exact, strict=True):
        assert error(one, other) < BOUND[one.dtype]
    d_sum, d_normed = drawn(count, size, seed=2), drawn(count, size, dtype=dtype, seed=3)
    for pull in (d_sum, None):
        back = triton_norm.backward(pull, d_normed, residual, delta, weight, found[2])
        pulled = None if pull is None else pull.double()
        wanted = norm.reference_backward(
            pulled, d_normed.double(), residual.double(), given, weight.double(), found[2].double()
        )
        for one, other in zip(back, wanted, strict=True):
            assert error(one, other) < BOUND[one.dtype]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("count", "size"), [(7, 1536), (3, 80)])
def test_swiglu(dtype: torch.dtype, count: int, size: int) -> None:
    gate_up, pull = drawn(count, 2 * size, dtype=dtype), drawn(count, size, dtype=dtype, seed=1)
    assert error(triton_swiglu.forward(gate_up), swiglu.reference_forward(gate_up.double())) < BOUND[dtype]
    found = triton_swiglu.backward(gate_up, pull)
    for one, other in zip(found, swiglu.reference_backward(gate_up.double(), pull.double()), strict=True):
        assert error(one, other) < BOUND[dtype]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("heads", [attention.Heads(9, 3, 64), attention.Heads(4, 4, 80)])
def test_rotation_and_back(dtype: torch.dtype, heads: attention.Heads) -> None:
    fused, angle = drawn(11, heads.width, dtype=dtype), drawn(11, heads.size // 2)
    for is_back in (False, True):
        expected, found = fused.double(), fused.clone()
        attention.reference_rotate(expected, angle.cos().double(), angle.sin().double(), heads, is_back)
        triton_rotary.rotate(found, angle.cos(), angle.sin(), heads.queries + heads.keys, heads.size, is_back)
        assert error(found, expected) < BOUND[dtype]


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("heads", [attention.Heads(3, 1, 64), attention.Heads(4, 4, 32)])
def test_attention(is_shared: bool, heads: attention.Heads) -> None:
    """Sequences longer than a block and shorter ones; the second begins as the first."""
    sizes, prefix = np.array([70, 200, 5, 33]), 30
    count = int(sizes.sum()) - (prefix if is_shared else 0)
    places = np.concatenate((np.arange(70), np.arange(prefix), np.arange(70, count))) if is_shared else np.arange(count)
    plan = attention.Varlen(sizes, places, DEVICE)
    fused = drawn(count, heads.width, dtype=NARROW)
    pull = drawn(count, heads.queries * heads.size, dtype=NARROW, seed=1)
    output, level = triton_attention.attend(fused, heads, plan, 0.125)
    exact = attention.reference_attend(fused.double(), heads, plan, 0.125)
    bound = 2 * BOUND[torch.bfloat16]
    assert error(output, exact[0]) < bound and error(level, exact[1]) < bound
    found = attend_back(pull, fused, output, level, heads, plan, 0.125)
    expected = attention.reference_attend_back(*wide(pull, fused), *exact, heads, plan, 0.125)
    for one, other in zip(heads.split(found), heads.split(expected), strict=True):
        assert error(one, other) < bound
    angle = drawn(count, heads.size // 2, seed=2)
    back = attend_back(pull, fused, output, level, heads, plan, 0.125, (angle.cos(), angle.sin()))
    attention.reference_rotate(expected, angle.cos().double(), angle.sin().double(), heads, is_back=True)
    for one, other in zip(heads.split(back), heads.split(expected), strict=True):
        assert error(one, other) < bound


@pytest.mark.parametrize(("count", "size", "vocabulary"), [(150, 64, 300), (5, 96, 256)])
def test_logprobs(count: int, size: int, vocabulary: int) -> None:
    """More rows than a tile has, a last tile that is not full, and an inner size that is not whole."""
    hidden, weight = drawn(count, size, dtype=NARROW), drawn(vocabulary, size, dtype=NARROW, seed=1)
    temperature = torch.linspace(0.5, 2, count, device=DEVICE)
    tokens = torch.arange(count, device=DEVICE) * 7 % vocabulary
    found = torch.full((3, count), float("nan"), device=DEVICE)
    triton_head.statistics(hidden, weight, tokens, temperature, found)
    expected, scores = found.double(), hidden.double() @ weight.double().t()
    logprobs.reference_statistics(scores, tokens, temperature.double(), expected)
    assert error(found, expected) < 1e-5
    pulls = torch.stack((drawn(count), drawn(count, seed=1), expected[1].float(), expected[2].float(), temperature))
    exact = logprobs.reference_gradient(scores, tokens, pulls.double(), torch.float64)
    assert error(triton_head.gradient(hidden, weight, tokens, pulls), exact) < BOUND[torch.bfloat16]


# ---- what only a GPU can run

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@needs_gpu
def test_products_are_summed_in_float32() -> None:
    one, other = drawn(4096, 96, dtype=torch.bfloat16), drawn(4096, 64, dtype=torch.bfloat16, seed=1)
    exact = one.double().t() @ other.double()
    assert error(weight_gradient(one, other, torch.float32), exact) < 1e-5
    total = drawn(96, 64, seed=2)
    before = total.double()
    add_product(total, one.t(), other)
    assert error(total, before + exact) < 1e-5


@needs_gpu
@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_the_quick_forward_in_bfloat16_is_the_slow_one_in_float32(is_checkpointed: bool, tmp_path: Path) -> None:
    folder = save_llama(tmp_path, hidden=192, layers=4, vocabulary=1000)
    batches = pack(groups_of(1000), TokenMean(), 0, 2000)
    found = {}
    for dtype in ("float32", "bfloat16"):
        fused = "off" if dtype == "float32" else "on"
        checkpointing = "on" if is_checkpointed and fused == "on" else "off"
        trainer = TorchTrainer(dtype=dtype, device="cuda", clip_norm=None, fused=fused, checkpointing=checkpointing)
        trainer.open(folder, 0)
        trainer.annotate(batches, frozenset({Logprobs("proximal")}))
        logprobs = torch.cat([batch.logprobs["proximal"] for batch in batches])
        objective = Objective((Clip(), Entropy(weight=0.01)))
        gradients = trainer.gradient(batches, objective)
        metrics = trainer.step(batches, objective)
        assert trainer._opened is not None and gradients.keys() == trainer.weights().keys()
        assert (trainer._opened.forward.fast_path(trainer._opened.model) is not None) == (fused == "on")
        found[dtype] = logprobs, metrics, gradients
    (slow, slow_metrics, slow_gradients), (quick, metrics, gradients) = found.values()
    assert float((slow - quick).abs().mean()) < 5e-3
    assert metrics["entropy"] == pytest.approx(slow_metrics["entropy"], rel=1e-2)
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        assert error(gradient, slow_gradients[name]) < 5e-2, name
