"""Decode kernels and the paged engine on a GPU: against plain torch, and against the plain engine."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.backends import Completion, WeightVersion
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.kernels.decode import PAGE, Plain, Rotation, Sheet, TokenPlaces
from strop.models.model import load_model, parameters
from strop.types import IntArray, Sampling
from tests.generate.engines.asking import prompts_of
from tests.tiny_models import save_tiny_model

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 1e-2}  # of |difference| / |reference|


def kernels() -> Any:
    from strop.kernels.triton.decode import Kernels

    return Kernels()


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got.double() - want.double()).norm() / want.double().norm())


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("heads,keys,size", [(9, 3, 64), (28, 4, 128), (4, 4, 16), (16, 8, 128)])
@pytest.mark.parametrize("rows", [3, 300])
def test_attention_over_pages(dtype: torch.dtype, heads: int, keys: int, size: int, rows: int) -> None:
    generator = torch.Generator("cuda").manual_seed(rows)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device="cuda").to(dtype)

    width = 40
    tables = torch.randperm(rows * width, generator=generator, device="cuda").view(rows, width).int()
    pages = [random(rows * width, keys, PAGE, size) for _ in "kv"]
    rotation = Rotation(
        *(torch.randn(width * PAGE, size // 2, generator=generator, device="cuda") for _ in "cs"),
        random(size),
        random(size),
        1e-6,
    )
    positions = torch.randint(0, width * PAGE, (rows,), generator=generator, device="cuda").int()
    where = TokenPlaces(torch.arange(rows, device="cuda").int(), positions, tables)
    packed = random(rows, heads + 2 * keys, size)
    copies = [each.clone() for each in pages]
    want = Plain().store(packed, *pages, where, rotation)
    got = kernels().store(packed, *copies, where, rotation)
    assert error(got, want) < BOUNDS[dtype]
    assert all(error(one, other) < BOUNDS[dtype] for one, other in zip(copies, pages, strict=True))
    assert error(kernels().attend(got, *pages, where, 0.1), Plain().attend(got, *pages, where, 0.1)) < BOUNDS[dtype]
    # a stretch of one slot's tokens sees what one token at a time sees
    count = 100
    at = torch.arange(500, 500 + count, device="cuda").int()
    runs = torch.tensor([[0, 500, 64], [64, 564, 36]], device="cuda").int()
    stretch = TokenPlaces(torch.ones_like(at), at, tables, runs)
    query = random(count, heads, size)
    many, single = kernels().attend(query, *pages, stretch, 0.1), Plain().attend(query, *pages, stretch, 0.1)
    assert error(many, single) < BOUNDS[dtype]


def test_norms_activations_and_writing() -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    residual = torch.randn(70, 576, generator=generator, device="cuda")
    other = residual.clone()
    delta = torch.randn(70, 576, generator=generator, device="cuda").bfloat16()
    weight = torch.randn(576, generator=generator, device="cuda").bfloat16()
    assert error(kernels().add_norm(residual, delta, weight, 1e-5), Plain().add_norm(other, delta, weight, 1e-5)) < 1e-2
    assert torch.equal(residual, other)
    gate_up = torch.randn(70, 3072, generator=generator, device="cuda").bfloat16()
    assert error(kernels().swiglu(gate_up), Plain().swiglu(gate_up)) < 1e-2
    slots = torch.arange(300, device="cuda")
    tokens, logprobs = torch.randint(0, 9, (300,), device="cuda"), torch.randn(300, device="cuda")
    sheets = [_sheet() for _ in "ab"]
    for operations, sheet in zip((kernels(), Plain()), sheets, strict=True):
        operations.write(sheet, slots, tokens, logprobs)
    for name in ("tokens", "logprobs", "versions", "lengths", "is_active"):
        assert torch.equal(getattr(sheets[0], name), getattr(sheets[1], name)), name


def _sheet() -> Sheet:
    generator = torch.Generator().manual_seed(3)
    whole = [torch.zeros(301, 20, dtype=dtype) for dtype in (torch.int32, torch.float32, torch.int32)]
    lengths, limits = (torch.randint(1, 19, (301,), generator=generator).int() for _ in "ab")
    parts = [*whole, lengths, limits, torch.rand(301, generator=generator) > 0.3]
    return Sheet(*(part.cuda() for part in parts), torch.tensor([7]).int().cuda(), torch.tensor([3, 5]).cuda())


async def ask(engine: Any, prompts: list[IntArray], sampling: Sampling) -> list[Completion]:
    return await asyncio.gather(*(engine.sample(prompt, sampling, key) for key, prompt in enumerate(prompts)))


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("sampling", [Sampling(max_tokens=30), Sampling(top_k=7, top_p=0.9, max_tokens=30)])
def test_both_paths_give_the_same_tokens_in_float32(tmp_path: Path, family: str, sampling: Sampling) -> None:
    folder = save_tiny_model(tmp_path, family, head_dim=16)
    prompts = [*prompts_of([3, 9, 30, 1, 17, 22, 5, 40, 2]), *prompts_of([30] * 9), prompts_of([40])[0]]
    quick, slow = PagedEngine(rows=6, dtype="float32", memory=0.01), TorchEngine(rows=6, device="cuda")
    answers = []
    for engine in (quick, slow):
        engine.open(folder)
        answers.append(asyncio.run(ask(engine, prompts, sampling)))
    for one, other in zip(*answers, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


def test_new_weights_reach_captured_steps(tmp_path: Path) -> None:
    folders = [save_tiny_model(tmp_path / str(seed), "llama", seed, head_dim=16) for seed in (0, 1)]
    prompts, sampling = prompts_of([5, 12, 3]), Sampling(max_tokens=20)
    engines = [PagedEngine(rows=4, dtype="float32", memory=0.01) for _ in folders]
    for engine, folder in zip(engines, folders, strict=True):
        engine.open(folder)
    asyncio.run(ask(engines[0], prompts, sampling))
    weights = parameters(load_model(folders[1], device="cuda"))
    asyncio.run(engines[0].load(WeightVersion(1, location=weights)))
    answers = [asyncio.run(ask(engine, prompts, sampling)) for engine in engines]
    for one, other in zip(*answers, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist() and set(one.versions) == {1}
