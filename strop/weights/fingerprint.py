"""Fingerprint of weights: a hash that changes with any single bit, fast enough for every sync."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from strop.kernels.cpu.checksum import checksum

_CHUNK, _CHUNK_ON_GPU = 1 << 22, 1 << 25  # elements looked at together
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of an element


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """Hash of names, shapes, dtypes and a position-weighted checksum of every tensor's bits."""
    tensors = {name: weights[name].detach() for name in sorted(weights)}
    checksums = _checksums(list(tensors.values()))
    return _digest((name, each, sum_) for (name, each), sum_ in zip(tensors.items(), checksums, strict=True))


def fingerprint_in_turn(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """The same for tensors that come sorted by name and are let go again, where there is no room for all at once."""
    return _digest((name, each, _checksums([each.detach()])[0]) for name, each in tensors)


def _digest(tensors: Iterable[tuple[str, Tensor, int]]) -> str:
    digest = hashlib.sha256()
    for name, tensor, number in tensors:
        digest.update(f"{name}|{tuple(tensor.shape)}|{tensor.dtype}|{number % (1 << 64)};".encode())
    return digest.hexdigest()[:32]


def _checksums(tensors: Sequence[Tensor]) -> list[int]:
    """One number for each; on a GPU equal shapes are looked at together, and it is waited for once."""
    if not any(tensor.is_cuda for tensor in tensors):
        return [_of_one(_matrix(tensor)) for tensor in tensors]
    alike: defaultdict[Any, list[int]] = defaultdict(list)
    for index, tensor in enumerate(tensors):
        alike[tensor.shape, tensor.dtype, tensor.device].append(index)
    parts = [part for members in alike.values() for part in _parts(members, tensors[members[0]].numel())]
    found = [_checksum(torch.stack([_matrix(tensors[index]) for index in part])) for part in parts]
    numbers = torch.cat([each.to(found[0].device) for each in found]).tolist()
    places = [index for part in parts for index in part]
    return [number for _, number in sorted(zip(places, numbers, strict=True))]


def _of_one(matrix: Tensor) -> int:
    """In one pass where something compiled can read it."""
    found = checksum(matrix) if matrix.numel() else 0
    return int(_checksum(matrix.unsqueeze(0))) if found is None else found


def _parts(members: list[int], size: int) -> list[list[int]]:
    """Cut so that no part of tensors of this size becomes large together."""
    count = max(1, _CHUNK_ON_GPU // max(1, size))
    return [members[start : start + count] for start in range(0, len(members), count)]


def _matrix(tensor: Tensor) -> Tensor:
    """Its bits as rows, without a copy where that can be."""
    matrix = tensor.reshape(1, -1) if tensor.dim() < 2 else tensor.flatten(0, -2)
    return matrix.view(_BITS[tensor.element_size()])


def _checksum(bits: Tensor) -> Tensor:
    """Sum over bits [N, rows, columns] times odd numbers that differ by position, along rows and then over rows: [N].

    Odd factors lose no bit flip, though sums wrap around: at 2^32 within a row of 4-byte elements (64 bits are several
    times slower there) and at 2^64 over rows. Nothing is copied to be contiguous, so a transposed tensor is as quick.
    """
    count, _, width = bits.shape
    chunk = _CHUNK_ON_GPU if bits.is_cuda else _CHUNK
    columns = _odd(width, bits.device).to(torch.int64 if bits.element_size() == 8 else torch.int32)
    sums = [
        (part * columns).sum(2, dtype=columns.dtype).to(torch.int64)
        for part in torch.split(bits, max(1, chunk // max(1, count * width)), 1)
    ]
    rows = torch.cat(sums, 1) if sums else columns.new_zeros(count, 0, dtype=torch.int64)
    return (rows * _odd(rows.shape[1], rows.device)).sum(1)


def _odd(count: int, device: torch.device) -> Tensor:
    """Distinct odd numbers [count]."""
    return torch.arange(count, device=device) * (2 * 0x9E3779B1) + 1
