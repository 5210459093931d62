"""The compiled functions against torch's own."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from strop.kernels.cpu.decode import Decode, StepTokens, compiled_decode

pytestmark = pytest.mark.skipif(compiled_decode() is None, reason="no compiler")


@pytest.fixture
def decode() -> Decode:
    found = compiled_decode()
    assert found is not None
    return found


def test_swiglu_is_torchs_over_the_whole_range(decode: Decode) -> None:
    gate = torch.cat([torch.linspace(-120, 120, 20001), torch.zeros(6)]).view(3, -1)
    up = torch.randn(gate.shape, generator=torch.Generator().manual_seed(0))
    ours = decode.swiglu(torch.cat([gate, up], 1), torch.empty_like(up))
    assert torch.allclose(ours, F.silu(gate) * up, rtol=1e-6, atol=1e-30)


def test_what_is_not_a_number_stays_none(decode: Decode) -> None:
    out = decode.swiglu(torch.tensor([[float("nan"), 1.0, 1.0, 2.0]]), torch.empty(1, 2))
    assert out.isnan().tolist() == [[True, False]]


@pytest.mark.parametrize("width", [5, 16, 100])
def test_normalisation_after_an_addition(decode: Decode, width: int) -> None:
    residual, delta, weight = torch.randn(4, width), torch.randn(4, width), torch.randn(width)
    want = residual + delta
    ours = decode.add_norm(residual, delta, weight, 1e-5, torch.empty(4, width))
    assert torch.equal(residual, want)
    assert torch.allclose(ours, F.rms_norm(want, (width,), weight, 1e-5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("window", [None, 1, 7, 20])
@pytest.mark.parametrize("size", [16, 48])
def test_attention_over_rows_of_any_length(decode: Decode, window: int | None, size: int) -> None:
    heads, groups, positions = 6, 2, torch.tensor([0, 15, 16, 40, 47, 30])
    rows = torch.tensor([4, 0, 2, 1, 5, 3])
    stored = torch.randn(6, heads + 2 * groups, size)
    keys, values = torch.randn(6, groups, 48, size), torch.randn(6, groups, 48, size)
    step = StepTokens(6, heads, groups, size, 48, *(t.data_ptr() for t in (rows, positions, stored, keys, values)))
    ours = decode.attend(step, 0.3, window, torch.empty(6, heads, size))
    for t, (row, last) in enumerate(zip(rows.tolist(), positions.tolist(), strict=True)):
        first = 0 if window is None else max(0, last + 1 - window)
        key, value = keys[row, :, first : last + 1], values[row, :, first : last + 1]
        query = stored[t, :heads].view(groups, heads // groups, size)
        want = (query @ key.transpose(-1, -2) * 0.3).softmax(-1) @ value
        assert torch.allclose(ours[t], want.reshape(heads, size), atol=1e-5)


def test_what_lies_behind_a_rows_end_does_not_matter(decode: Decode) -> None:
    rows, positions, stored = torch.tensor([0]), torch.tensor([18]), torch.randn(1, 3, 16)
    keys, values = torch.randn(1, 1, 32, 16), torch.randn(1, 1, 32, 16)
    step = StepTokens(1, 1, 1, 16, 32, *(t.data_ptr() for t in (rows, positions, stored, keys, values)))
    before = decode.attend(step, 1.0, None, torch.empty(1, 16))
    keys[0, 0, 19:], values[0, 0, 19:] = torch.nan, torch.nan
    assert torch.equal(before, decode.attend(step, 1.0, None, torch.empty(1, 16)))


@pytest.mark.parametrize("length", [1, 15, 16, 17, 32])
def test_sharing_touches_nothing_else(decode: Decode, length: int) -> None:
    keys, values = torch.randn(2, 2, 32, 16), torch.randn(2, 2, 32, 16)
    before = keys.clone(), values.clone()
    step = StepTokens(0, 2, 2, 16, 32, None, None, None, keys.data_ptr(), values.data_ptr())
    decode.share(step, 0, 1, length)
    for now, then in zip((keys, values), before, strict=True):
        assert torch.equal(now[1, :, :length], then[0, :, :length])
        assert torch.equal(now[1, :, length:], then[1, :, length:])
        assert torch.equal(now[0], then[0])


def test_keys_are_turned_and_put_where_they_belong(decode: Decode) -> None:
    size, positions, rows = 16, torch.tensor([17, 3]), torch.tensor([1, 0])
    angles = torch.arange(32.0)[:, None] * torch.tensor(np.geomspace(1, 0.01, size // 2), dtype=torch.float32)
    cosine, sine = angles.cos(), angles.sin()
    heads = torch.randn(2, 4, size)  # 2 queries, 1 key, 1 value
    given = heads.clone()
    keys, values = torch.zeros(2, 1, 32, size), torch.zeros(2, 1, 32, size)
    step = StepTokens(2, 2, 1, size, 32, *(t.data_ptr() for t in (rows, positions, heads, keys, values)))
    norm = torch.rand(size)
    decode.store(step, cosine, sine, norm, norm, 1e-6)
    normed = F.rms_norm(given[:, :3], (size,), norm, 1e-6)
    first, second = normed.chunk(2, -1)
    c, s = cosine[positions].unsqueeze(1), sine[positions].unsqueeze(1)
    want = torch.cat([first * c - second * s, second * c + first * s], -1)
    assert torch.allclose(heads[:, :2], want[:, :2], atol=1e-5)
    for t, (row, position) in enumerate(zip(rows.tolist(), positions.tolist(), strict=True)):
        assert torch.allclose(keys[row, 0, position], want[t, 2], atol=1e-5)
        assert torch.equal(values[row, 0, position], given[t, 3])
    assert keys.count_nonzero() == 2 * size
