"""A name for weights that changes with any single bit, quick enough to compute on every sync."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

_CHUNK = 1 << 22


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Hash of names, shapes, dtypes and a position-weighted checksum of every tensor's bits."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach()
        digest.update(f"{name}|{tuple(tensor.shape)}|{tensor.dtype}|{_checksum(tensor)};".encode())
    return digest.hexdigest()[:32]


def _checksum(tensor: Tensor) -> int:
    """Sum of bits times an odd number that differs by position, modulo 2^64: odd factors lose no bit flip."""
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = tensor.contiguous().view(-1).view(widths[tensor.element_size()])
    total = 0
    for start in range(0, flat.numel(), _CHUNK):
        bits = flat[start : start + _CHUNK].to(torch.int64)
        factor = torch.arange(start, start + bits.numel(), device=bits.device) * 0x9E3779B1 * 2 + 1
        total += int((bits * factor).sum())
    return total % (1 << 64)
