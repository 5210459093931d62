"""Kernels of a step that guesses, on a GPU or in Triton's interpreter, beside plain torch."""

from __future__ import annotations

import pytest
import torch

from strop.kernels.decode import Plain, Sheet
from tests.gpu.triton_device import triton_device

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton.decode import Kernels  # noqa: E402


def test_several_tokens_are_written_as_one_after_the_other() -> None:
    def sheet() -> Sheet:
        tokens, real = (torch.zeros(6, 9, dtype=each, device=DEVICE) for each in (torch.int32, torch.float32))
        ones, limits = (torch.tensor(each, dtype=torch.int32, device=DEVICE) for each in ([1] * 6, [9, 9, 9, 2, 9, 9]))
        is_active = torch.tensor([True] * 5 + [False], device=DEVICE)
        return Sheet(
            tokens, real, tokens.clone(), ones, limits, is_active, ones[:1] + 6, torch.tensor([8], device=DEVICE)
        )

    drawn = torch.arange(18, device=DEVICE).view(6, 3)
    sheets, slots = (sheet(), sheet()), torch.arange(6, device=DEVICE)
    counts = torch.tensor([3, 1, 3, 3, 2, 3], device=DEVICE)
    for each, operations in zip(sheets, (Kernels(), Plain()), strict=True):
        operations.write(each, slots, drawn, -drawn.float(), counts)
        operations.write(each, slots, drawn[:, 0], -drawn.float()[:, 0])
    for name in ("tokens", "logprobs", "versions", "lengths", "is_active"):
        assert torch.equal(*(getattr(each, name) for each in sheets)), name
    assert sheets[0].lengths.tolist() == [5, 3, 4, 2, 4, 1] and sheets[0].versions[0, 1] == 7  # 8 ends the third
    assert sheets[0].tokens[2, 1:5].tolist() == [6, 7, 8, 0] and sheets[0].is_active.tolist() == [1, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_state_and_a_token_side_by_side(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    embedding, state = torch.randn(50, 96, device=DEVICE).to(dtype), torch.randn(5, 96, device=DEVICE) * 3
    tokens = torch.tensor([0, 49, 7, 7, 20], device=DEVICE)
    ours, plain = (each.pair(state, tokens, embedding, 1e-6) for each in (Kernels(), Plain()))
    torch.testing.assert_close(ours, plain, atol=1e-6 if dtype == torch.float32 else 0.02, rtol=0)
