"""Shared memory for weights: the same bits on the other side, written once, gone with its owner."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from strop.weights.fingerprint import fingerprint
from strop.weights.mapped_memory import Alternating, allocate, attach


def weights(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "matrix": torch.randn(7, 5, generator=generator).t(),
        "half": torch.randn(3, generator=generator).to(torch.bfloat16),
        "number": torch.tensor(1.5),
        "nothing": torch.zeros(0, 4),
    }


def test_what_is_mapped_is_what_was_written() -> None:
    shared = allocate(weights(0))
    shared.write(weights(1))
    mapped = attach(shared.address)
    assert fingerprint(mapped) == fingerprint(shared) == fingerprint(weights(1)) != fingerprint(weights(0))
    mapped["matrix"][0, 0] = 77.0  # a reader that writes harms nobody else
    assert fingerprint(shared) == fingerprint(attach(shared.address)) == fingerprint(weights(1))
    shared["matrix"].view(-1)[3] *= 1 + 2**-23  # one bit
    assert fingerprint(attach(shared.address)) != fingerprint(weights(1))


def test_the_last_version_stays_whole_while_the_next_is_written() -> None:
    buffers = Alternating()
    first = buffers.write(weights(0))
    second = buffers.write(weights(1))
    assert fingerprint(attach(first.address)) == fingerprint(weights(0))
    assert fingerprint(attach(second.address)) == fingerprint(weights(1))
    assert buffers.write(weights(2)) is first  # no more than two, however many versions
    other = {"matrix": torch.zeros(2, 2)}
    assert fingerprint(buffers.write(other)) == fingerprint(other)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory without a name")
def test_the_memory_has_no_name_and_ends_with_its_owner() -> None:
    before = sorted(Path("/dev/shm").iterdir())
    shared = allocate(weights(0))
    path, mapped = Path(shared.address["path"]), attach(shared.address)
    assert path.exists() and sorted(Path("/dev/shm").iterdir()) == before
    del shared
    gc.collect()
    assert not path.exists()
    assert mapped["number"] == 0  # whoever mapped it keeps it
