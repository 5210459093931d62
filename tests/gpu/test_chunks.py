"""Attention sums chunk by chunk: right around the chunks' borders, and by one program or several to the same bits.

On a GPU, or in Triton's own interpreter: `TRITON_INTERPRET=1 pytest tests/gpu/test_chunks.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.kernels import attention
from strop.kernels.attention import Heads, Varlen
from strop.kernels.decode import PAGE, TokenPlaces
from tests.gpu.triton_device import IS_INTERPRETED, triton_device

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton import attention as triton_attention  # noqa: E402
from strop.kernels.triton import paged_attention  # noqa: E402
from strop.kernels.triton.summing import CHUNK  # noqa: E402

NARROW = torch.float16 if IS_INTERPRETED else torch.bfloat16  # whose products the interpreter knows
BOUND = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 5e-3}
LENGTHS = np.array([1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
SIGHTS = [(None, None), (100, None), (CHUNK + 30, 2.0)]  # windows and caps: one begins inside a chunk, for each length
SCALE = 0.3


def error(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def packed(heads: Heads, dtype: torch.dtype) -> tuple[Tensor, Varlen]:
    """Sequences one after the other, scores so far apart that the highest of a later chunk may be the higher one."""
    generator = torch.Generator().manual_seed(heads.size)
    fused = 2 * torch.randn(int(LENGTHS.sum()), heads.width, generator=generator)
    return fused.to(dtype).to(DEVICE), Varlen(LENGTHS, np.arange(LENGTHS.sum()), DEVICE)


def paged(fused: Tensor, heads: Heads) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, pages of keys and of values that lie about in any order, and the tables that name them."""
    query, key, value = heads.split(fused)
    width = -(-int(LENGTHS.max()) // PAGE)
    tables = torch.randperm(len(LENGTHS) * width, generator=torch.Generator().manual_seed(0)).view(-1, width).int()
    pages = torch.full((2, tables.numel(), heads.keys, PAGE, heads.size), float("nan"), dtype=fused.dtype)
    slots, places = owners()
    at = tables[slots, places // PAGE].long()
    for into, each in zip(pages, (key, value), strict=True):
        into[at, :, places % PAGE] = each.cpu()
    return query.contiguous(), pages[0].to(DEVICE), pages[1].to(DEVICE), tables.to(DEVICE)


def owners() -> tuple[Tensor, Tensor]:
    """Of each packed token, whose it is and where it stands there."""
    slots = torch.from_numpy(np.repeat(np.arange(len(LENGTHS)), LENGTHS))
    return slots, torch.cat([torch.arange(int(length)) for length in LENGTHS])


def stretches() -> tuple[Tensor, list[tuple[int, int, int]]]:
    """The last tokens of each sequence, in one or two runs as of a prefill; they may cross the border of chunks."""
    tokens, runs = [], []
    for stop, length in zip(np.cumsum(LENGTHS).tolist(), LENGTHS.tolist(), strict=True):
        for start, end in ((max(0, length - 74), max(0, length - 10)), (max(0, length - 10), length)):
            if end > start:
                runs.append((sum(map(len, tokens)), start, end - start))
                tokens.append(torch.arange(stop - length + start, stop - length + end))
    return torch.cat(tokens), runs


@pytest.mark.parametrize(
    ("dtype", "window", "cap"), [(torch.float32, None, None), *((NARROW, window, cap) for window, cap in SIGHTS)]
)
def test_every_program_gives_what_plain_torch_gives(
    dtype: torch.dtype, window: int | None, cap: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = Heads(2, 1, 32)
    fused, plan = packed(heads, dtype)
    exact, exact_level = attention.reference_attend(fused.double(), heads, plan, SCALE, window, cap)
    exact = exact.view(-1, heads.queries, heads.size)
    query, keys, values, tables = paged(fused, heads)

    def attended(tokens: Tensor, runs: list[tuple[int, int, int]] | None = None) -> Tensor:
        slots, places = (each[tokens].int().to(DEVICE) for each in owners())
        where = TokenPlaces(slots, places, tables, None if runs is None else torch.tensor(runs, device=DEVICE).int())
        return paged_attention.attend(query[tokens], keys, values, where, SCALE, window, cap)

    last, steps = torch.from_numpy(np.cumsum(LENGTHS) - 1), []
    for lanes, many in ((1, 2048), (2, 2048), (4, 2048), (1, 1)):
        monkeypatch.setattr(paged_attention, "lanes_of", lambda pairs, chunks, lanes=lanes: lanes)
        monkeypatch.setattr(paged_attention, "_MANY", many)
        steps.append(attended(last))
        assert error(steps[-1], exact[last]) < BOUND[dtype]
    assert all(torch.equal(steps[0], each) for each in steps)
    several, runs = stretches()
    prefill = attended(several, runs)
    assert error(prefill, exact[several]) < BOUND[dtype]
    output, level = triton_attention.attend(fused, heads, plan, SCALE, window, cap)
    output = output.view(exact.shape)
    assert error(output, exact) < (5e-3 if dtype == torch.float32 and not IS_INTERPRETED else BOUND[dtype])  # TF32
    assert error(level, exact_level) < 1e-3
    if not IS_INTERPRETED and dtype != torch.float32:
        assert torch.equal(prefill, output[several]) and torch.equal(steps[0], output[last])


@pytest.mark.skipif(IS_INTERPRETED, reason="numpy sums in an order of its own")
@pytest.mark.parametrize("heads", [Heads(28, 4, 128), Heads(9, 3, 64), Heads(8, 4, 256)])
@pytest.mark.parametrize(("window", "cap"), SIGHTS)
def test_engine_and_trainer_give_the_same_bits(heads: Heads, window: int | None, cap: float | None) -> None:
    fused, plan = packed(heads, torch.bfloat16)
    query, keys, values, tables = paged(fused, heads)
    output = triton_attention.attend(fused, heads, plan, 0.02, window, cap)[0].view(query.shape)
    slots, places = (each.int().to(DEVICE) for each in owners())
    for tokens in (torch.arange(len(fused))[-count:] for count in (9, 300, len(fused))):  # shared out, long, short
        where = TokenPlaces(slots[tokens], places[tokens], tables)
        found = paged_attention.attend(query[tokens], keys, values, where, 0.02, window, cap)
        assert torch.equal(found, output[tokens])


def test_few_rows_are_shared_out_and_many_are_not() -> None:
    """From what a captured step knows: its rows, its heads of keys and the width of its table."""
    shared = [paged_attention.lanes_of(pairs, 64) for pairs in (1, 64, 1024, 4096)]
    assert shared[0] == 64 and 1 < shared[1] <= 64 and shared[2:] == [1, 1]
    assert paged_attention.lanes_of(1, 1) == 1  # sequences that are never longer than a chunk
