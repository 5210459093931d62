"""A name for weights that changes with any single bit, quick enough to compute on every sync."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

_CHUNK = 1 << 22  # elements looked at together
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of an element


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Hash of names, shapes, dtypes and a position-weighted checksum of every tensor's bits."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach()
        digest.update(f"{name}|{tuple(tensor.shape)}|{tensor.dtype}|{_checksum(tensor)};".encode())
    return digest.hexdigest()[:32]


def _checksum(tensor: Tensor) -> int:
    """Sum over bits times odd numbers that differ by position, along rows and then over rows.

    Odd factors lose no bit flip, though sums wrap around: at 2^32 within a row of 4-byte elements (64 bits are several
    times slower there) and at 2^64 over rows. Nothing is copied to be contiguous, so a transposed tensor is as quick.
    """
    matrix = tensor.reshape(1, -1) if tensor.dim() < 2 else tensor.flatten(0, -2)
    bits = matrix.view(_BITS[tensor.element_size()])
    columns = _odd(bits.shape[1], bits.device).to(torch.int64 if tensor.element_size() == 8 else torch.int32)
    sums = [
        (part * columns).sum(1, dtype=columns.dtype).to(torch.int64)
        for part in torch.split(bits, max(1, _CHUNK // max(1, bits.shape[1])))
    ]
    rows = torch.cat(sums) if sums else columns.new_zeros(0, dtype=torch.int64)
    return int((rows * _odd(len(rows), rows.device)).sum()) % (1 << 64)


def _odd(count: int, device: torch.device) -> Tensor:
    """Distinct odd numbers [count]."""
    return torch.arange(count, device=device) * (2 * 0x9E3779B1) + 1
