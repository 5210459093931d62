"""A fingerprint changes with any bit and with nothing else."""

from __future__ import annotations

import pytest
import torch

from strop.kernels.cpu.checksum import checksum, compiled
from strop.weights.fingerprint import _checksum, _matrix, fingerprint

_INTEGERS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float64: torch.int64}


@pytest.mark.parametrize("dtype", _INTEGERS)
def test_any_flipped_bit_changes_it(dtype: torch.dtype) -> None:
    weights = {"a": torch.randn(5, 3, 7).to(dtype), "b": torch.randn(11).to(dtype), "c": torch.tensor(2.0, dtype=dtype)}
    whole = fingerprint(weights)
    for tensor in weights.values():
        bits = tensor.view(-1).view(_INTEGERS[dtype])
        for place in range(0, len(bits), 4):
            for shift in range(8 * tensor.element_size()):
                flip = torch.ones((), dtype=bits.dtype) << shift
                bits[place] ^= flip
                assert fingerprint(weights) != whole
                bits[place] ^= flip
    assert fingerprint(weights) == whole


def test_exchanged_places_change_it() -> None:
    weight = torch.arange(12.0).view(3, 4)
    names = {
        fingerprint({"a": each}) for each in (weight, weight[[1, 0, 2]], weight[:, [1, 0, 2, 3]], weight.view(4, 3))
    }
    assert len(names | {fingerprint({"b": weight})}) == 5


def test_how_a_tensor_lies_in_memory_does_not_matter() -> None:
    weight = torch.randn(600, 100)
    lying = torch.empty(100, 1000)[:, 200:800].t().copy_(weight)
    assert fingerprint({"a": lying}) == fingerprint({"a": weight})


def test_large_and_empty_tensors() -> None:
    large = torch.zeros(3, 1 << 22)  # more than is looked at together
    whole = fingerprint({"a": large})
    large[2, -1] = 1e-45
    assert fingerprint({"a": large}) != whole
    assert fingerprint({"a": torch.zeros(0)}) != fingerprint({"a": torch.zeros(0, 3)}) != fingerprint({})


def test_tensors_looked_at_together_have_the_numbers_they_have_alone() -> None:
    """As they are on a GPU."""
    for shape in ((4, 9), (7,), (), (0, 3), (2, 3, 5)):
        several = [torch.randn(shape) for _ in range(3)]
        alone = [int(_checksum(_matrix(each).unsqueeze(0))) for each in several]
        assert _checksum(torch.stack([_matrix(each) for each in several])).tolist() == alone


@pytest.mark.skipif(compiled() is None, reason="no compiler here")
def test_the_compiled_checksum_is_the_plain_one() -> None:
    for shape in ((4, 9), (7,), (), (2, 3, 5), (192, 512), (1, 100_003), (3001, 33), (700, 300)):
        matrix = _matrix(torch.randn(shape))
        wide = matrix.new_empty(matrix.shape[0], 2 * matrix.shape[1])[:, : matrix.shape[1]].copy_(matrix)
        for lying in (matrix, matrix.t().contiguous().t(), wide):
            assert checksum(lying) == int(_checksum(matrix.unsqueeze(0)))
    for other in (torch.zeros(2, 2, dtype=torch.int64), torch.zeros(4, 4, dtype=torch.int32)[::2, ::2]):
        assert checksum(other) is None
