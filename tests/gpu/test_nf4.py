"""Weights in four bits, unpacked by a kernel: on a GPU, or in Triton's own interpreter (`TRITON_INTERPRET=1`)."""

from __future__ import annotations

import pytest
import torch

from strop.kernels.nf4 import pack, reference_unpack
from tests.gpu.triton_device import IS_INTERPRETED, triton_device

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton import nf4  # noqa: E402


@pytest.mark.parametrize("shape", [(64, 64), (7, 192), (513, 128)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16 if IS_INTERPRETED else torch.bfloat16])
def test_the_same_bits_as_plain_torch(shape: tuple[int, int], dtype: torch.dtype) -> None:
    """The interpreter does not round to bfloat16, it cuts."""
    codes, scales = pack(torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(DEVICE))
    found, expected = (torch.empty(shape[0] * shape[1], dtype=dtype, device=DEVICE) for _ in range(2))
    nf4.unpack(codes, scales, found)
    reference_unpack(codes, scales, expected)
    assert torch.equal(found, expected)
