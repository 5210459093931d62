"""Rotary position embeddings (RoFormer, Su et al. 2021) and causal attention over packed sequences of various lengths.

Attention scores are never stored (FlashAttention, Dao 2023). Sequences that share a prefix read the same keys: queries
are only the last tokens of each sequence, so nothing is computed twice and nothing is padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from strop.kernels.cpu import train
from strop.kernels.cpu.build import LANES
from strop.types import IntArray

Angles: TypeAlias = tuple[Tensor, Tensor]  # cosine and sine [T, D / 2]

QUERY_BLOCK, KEY_BLOCK = 64, 64  # tokens of one program, in the tables of a plan


@dataclass(frozen=True)
class Heads:
    """Column layout of a fused query-key-value projection [T, (H + 2K) D]."""

    queries: int  # H
    keys: int  # K
    size: int  # D

    @property
    def width(self) -> int:
        return (self.queries + 2 * self.keys) * self.size

    def split(self, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Views of queries [T, H, D], keys and values [T, K, D]."""
        heads = fused.view(len(fused), -1, self.size)
        query, key, value = torch.split(heads, [self.queries, self.keys, self.keys], 1)
        return query, key, value


class Varlen:
    """Keys visible to each computed token, in blocks of queries and of keys.

    `sizes` [S] are the lengths of sequences. `places` [N] is, for each token of a sequence, the index of the computed
    token that it is; tokens before a sequence's own ones are its shared prefix.
    """

    def __init__(self, sizes: IntArray, places: IntArray, device: torch.device | str) -> None:
        # tokens are numbered as they first occur
        is_own = np.diff(np.maximum.accumulate(places), prepend=-1) > 0
        own = np.add.reduceat(is_own.astype(np.int64), np.cumsum(sizes) - sizes)  # [S]
        kept = own > 0  # a sequence that is a prefix of another has nothing left to compute
        places, sizes, own = places[np.repeat(kept, sizes)], sizes[kept], own[kept]
        self.sizes, self.own, self.longest = sizes, own, int(sizes.max(initial=0))
        queries, keys = _blocks(own, sizes)
        tables = [queries, keys]
        if is_shared := len(places) != own.sum():
            tables += [places, np.argsort(places, kind="stable"), _bounds(np.bincount(places))]
        there = _moved(tables, device)
        self.queries, self.keys = there[0].view(-1, 4), there[1].view(-1, 6)
        self.gather = there[2] if is_shared else None  # [N], the computed token behind each key
        self.order = there[3] if is_shared else None  # [N], keys by the token behind them
        self.bounds = there[4] if is_shared else None  # [U + 1], where each token's keys lie in `order`


def _blocks(own: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Of each block what a program must know; those with most to do come first.

    [B, 4]: first query, queries, first key of the sequence, place of the first query in it.
    [C, 6]: first key, keys, its place in the sequence; first query, queries, place of the first query.
    """
    query_starts, key_starts, shift = np.cumsum(own) - own, np.cumsum(sizes) - sizes, sizes - own
    owner, start = _cut(own, QUERY_BLOCK)
    counts = np.minimum(QUERY_BLOCK, own[owner] - start)
    queries = np.stack((query_starts[owner] + start, counts, key_starts[owner], shift[owner] + start), 1)
    queries = queries[np.argsort(-(queries[:, 3] + queries[:, 1]), kind="stable")]
    owner, start = _cut(sizes, KEY_BLOCK)
    keys = np.stack(
        (
            key_starts[owner] + start, np.minimum(KEY_BLOCK, sizes[owner] - start), start,
            query_starts[owner], own[owner], shift[owner],
        ),
        1,
    )  # fmt: skip
    return queries, keys[np.argsort(start - sizes[owner], kind="stable")]


def _cut(sizes: IntArray, block: int) -> tuple[IntArray, IntArray]:
    """For each block of each sequence whose it is, and where it begins there."""
    counts = -(-sizes // block)
    owner = np.repeat(np.arange(len(sizes)), counts)
    return owner, (np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]) * block


def _bounds(sizes: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes)))


def _moved(tables: list[IntArray], device: torch.device | str) -> list[Tensor]:
    """All of them by one transfer, as int32."""
    flat = torch.from_numpy(np.concatenate([table.reshape(-1) for table in tables]).astype(np.int32))
    return list(torch.split(moved(flat, device), [table.size for table in tables]))


def moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device; the host does not wait for a copy to a GPU."""
    is_copied = torch.device(device).type == "cuda" and not tensor.is_cuda
    return tensor.pin_memory().to(device, non_blocking=True) if is_copied else tensor.to(device)


def takes(heads: Heads) -> bool:
    """Whether a CPU has compiled attention for heads of this size."""
    return heads.size % LANES == 0 and train.compiled() is not None


def attend(
    fused: Tensor, heads: Heads, plan: Varlen, scale: float, window: int | None = None, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    """Turned heads [U, (H + 2K) D] -> [U, H D], and the logarithm of each row's sum in base 2 [H, U].

    With a window each token sees so many of the last ones, itself included; with a cap scores stay below it.
    """
    if fused.is_cuda:
        from strop.kernels.triton import attention

        return attention.attend(fused, heads, plan, scale, window, cap)
    if window is None and cap is None and takes(heads) and (compiled := train.serving(fused)):
        return compiled.attend(fused, heads, plan, scale)
    return reference_attend(fused, heads, plan, scale, window, cap)


def attend_back(
    d_output: Tensor, fused: Tensor, output: Tensor, level: Tensor, heads: Heads, plan: Varlen, scale: float,
    angles: Angles | None = None, window: int | None = None, cap: float | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of the turned heads [U, (H + 2K) D]; with angles, of the heads before they were turned by them."""
    if fused.is_cuda:
        from strop.kernels.triton import attention_back

        return attention_back.attend_back(d_output, fused, output, level, heads, plan, scale, angles, window, cap)
    is_plain = window is None and cap is None and takes(heads)
    if is_plain and (compiled := train.serving(d_output, fused, output, level)):
        found = compiled.attend_back(d_output, fused, output, level, heads, plan, scale)
    else:
        found = reference_attend_back(d_output, fused, output, level, heads, plan, scale, window, cap)
    if angles is not None:
        rotate(found, *angles, heads, is_back=True)
    return found


def rotate(fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads, is_back: bool = False) -> None:
    """Turn queries and keys of fused [T, (H + 2K) D] in place by angles [T, D / 2], in float32 and rounded once."""
    if fused.is_cuda:
        from strop.kernels.triton import rotary

        rotary.rotate(fused, cosine, sine, heads.queries + heads.keys, heads.size, is_back)
    elif compiled := train.serving(fused, cosine, sine):
        compiled.rotate(fused, cosine, sine, heads, is_back)
    else:
        reference_rotate(fused, cosine, sine, heads, is_back)


def reference_rotate(fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads, is_back: bool = False) -> None:
    for each in heads.split(fused)[:2]:
        each.copy_(turned(each, cosine, -sine if is_back else sine))


def turned(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """[T, H, D] by angles [T, D / 2], in their precision."""
    first, second = heads.to(cosine.dtype).chunk(2, -1)
    cosine, sine = cosine.unsqueeze(1), sine.unsqueeze(1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


def reference_attend(
    fused: Tensor, heads: Heads, plan: Varlen, scale: float, window: int | None = None, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    outputs, levels = [], []
    for query, key, value, mask in _sequences(fused, heads, plan, window):
        scores = capped(query @ key.transpose(1, 2) * scale, cap).masked_fill(~mask, float("-inf"))  # [H, Q, L]
        outputs.append((scores.softmax(-1) @ value).transpose(0, 1).flatten(1))
        levels.append(scores.logsumexp(-1) / np.log(2))
    return torch.cat(outputs), torch.cat(levels, 1)


def reference_attend_back(
    d_output: Tensor, fused: Tensor, output: Tensor, level: Tensor, heads: Heads, plan: Varlen, scale: float,
    window: int | None = None, cap: float | None = None,
) -> Tensor:  # fmt: skip
    """With P = softmax(S): dV = P' dO, dS = P (dO V' - sum(dO O)), dQ = dS K, dK = dS' Q.

    Where S = c tanh(Z / c), dZ = dS (1 - (S / c)^2) stands for dS.
    """
    found = torch.zeros_like(fused)
    d_query, d_key, d_value = heads.split(found)
    at = seen_at = 0
    repeats = heads.queries // heads.keys
    for query, key, value, mask in _sequences(fused, heads, plan, window):
        rows = slice(at, at + query.shape[1])
        at, seen = rows.stop, _seen(plan, seen_at, key.shape[1], fused.device)
        seen_at += key.shape[1]
        pull, own = (each[rows].view(-1, heads.queries, heads.size).transpose(0, 1) for each in (d_output, output))
        scores = capped(query @ key.transpose(1, 2) * scale, cap)
        shares = (scores - level[:, rows, None] * np.log(2)).exp() * mask
        d_scores = shares * (pull @ value.transpose(1, 2) - (pull * own).sum(-1, keepdim=True)) * scale
        d_scores = d_scores if cap is None else d_scores * (1 - (scores / cap).square())
        d_query[rows] = (d_scores @ key).transpose(0, 1)
        for into, of_heads in ((d_key, d_scores.transpose(1, 2) @ query), (d_value, shares.transpose(1, 2) @ pull)):
            into.index_add_(0, seen, of_heads.unflatten(0, (heads.keys, repeats)).sum(1).transpose(0, 1))
    return found


def capped(scores: Tensor, cap: float | None) -> Tensor:
    """Bent so that none is above the cap (Gemma 2, 2408.00118)."""
    return scores if cap is None else torch.tanh(scores / cap) * cap


def _sequences(
    fused: Tensor, heads: Heads, plan: Varlen, window: int | None
) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Queries [H, Q, D], keys and values [H, L, D], and what is seen [Q, L], of each sequence."""
    query, key, value = heads.split(fused)
    found, at, seen_at = [], 0, 0
    for own, size in zip(plan.own.tolist(), plan.sizes.tolist(), strict=True):
        seen = _seen(plan, seen_at, size, fused.device)
        repeated = [e[seen].repeat_interleave(heads.queries // heads.keys, 1).transpose(0, 1) for e in (key, value)]
        mask = torch.ones(own, size, dtype=torch.bool, device=fused.device).tril(size - own)
        mask = mask if window is None else mask.triu(size - own - window + 1)
        found.append((query[at : at + own].transpose(0, 1), repeated[0], repeated[1], mask))
        at, seen_at = at + own, seen_at + size
    return found


def _seen(plan: Varlen, start: int, size: int, device: torch.device) -> Tensor:
    """The computed tokens behind the keys of one sequence."""
    index = torch.arange(start, start + size, device=device)
    return index if plan.gather is None else plan.gather[index].long()
