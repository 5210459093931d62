"""Output layer fused with logprobs and entropy in Triton: logits are never written to memory.

Forward, each tile of the product gives a maximum and two sums per row, combined afterwards. Backward, each tile is
recomputed and written as its gradient.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# of a tile, and how it is computed
STATISTICS = {"ROWS": 128, "COLUMNS": 128, "INNER": 64, "num_warps": 8, "num_stages": 3}
GRADIENT = {"ROWS": 128, "COLUMNS": 128, "INNER": 64, "num_warps": 8, "num_stages": 3}
_TOGETHER = 16  # tiles of rows that share columns while those lie in the cache
_COMBINED = 64  # rows of one program that puts tiles together
_LEAST = tl.constexpr(-1e38)  # finite, so that the difference of two of them is a number


def statistics(
    hidden: Tensor, weight: Tensor, tokens: Tensor, temperature: Tensor, into: Tensor, cap: float | None = None
) -> None:
    """Of hidden [R, H] @ weight [V, H]' at the temperature: logprob, entropy and log-sum-exp, written to [3, R]."""
    count, size = hidden.shape
    tiles = triton.cdiv(len(weight), STATISTICS["COLUMNS"])
    partial = torch.empty(3, tiles, count, dtype=torch.float32, device=hidden.device)  # maximum, sum, weighted sum
    logprobs, entropy, logsumexp = into
    _statistics[(triton.cdiv(count, STATISTICS["ROWS"]) * tiles,)](
        hidden, weight, tokens, temperature, partial, partial.stride(0), logprobs, count, len(weight), tiles,
        SIZE=size, TOGETHER=_TOGETHER, CAP=cap or 0.0, **STATISTICS,
    )  # fmt: skip
    _combine[(triton.cdiv(count, _COMBINED),)](
        partial, partial.stride(0), logprobs, entropy, logsumexp, count, tiles, ROWS=_COMBINED, num_warps=2
    )


def gradient(hidden: Tensor, weight: Tensor, tokens: Tensor, pulls: Tensor, cap: float | None = None) -> Tensor:
    """Gradient of the logits [R, V]; `pulls` [5, R] as in `strop.kernels.logprobs.gradient`."""
    count, size = hidden.shape
    tiles = triton.cdiv(len(weight), GRADIENT["COLUMNS"])
    d_logits = torch.empty(count, len(weight), dtype=hidden.dtype, device=hidden.device)
    of_logprob, of_entropy, entropy, logsumexp, temperature = pulls
    _gradient[(triton.cdiv(count, GRADIENT["ROWS"]) * tiles,)](
        hidden, weight, tokens, of_logprob, of_entropy, entropy, logsumexp, temperature, d_logits,
        count, len(weight), tiles,
        SIZE=size, TOGETHER=_TOGETHER, CAP=cap or 0.0, **GRADIENT,
    )  # fmt: skip
    return d_logits


@triton.jit
def _place(count, tiles, ROWS: tl.constexpr, TOGETHER: tl.constexpr):
    """Row and column of this program's tile."""
    program = tl.program_id(0)
    high = tl.cdiv(count, ROWS)
    first = program // (TOGETHER * tiles) * TOGETHER
    wide = tl.minimum(high - first, TOGETHER)
    rest = program % (TOGETHER * tiles)
    return first + rest % wide, rest // wide


@triton.jit
def _logits(
    hidden, weight, rows, columns, count, vocabulary,
    SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, CAP: tl.constexpr,
):  # fmt: skip
    inner = tl.arange(0, INNER)
    left = hidden + tl.minimum(rows, count - 1).to(tl.int64)[:, None] * SIZE + inner[None, :]
    right = weight + tl.minimum(columns, vocabulary - 1).to(tl.int64)[None, :] * SIZE + inner[:, None]
    found = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, SIZE, INNER):
        if SIZE % INNER == 0:
            found = tl.dot(tl.load(left + start), tl.load(right + start), found)
        else:
            is_there = start + inner < SIZE
            found = tl.dot(
                tl.load(left + start, is_there[None, :], 0.0), tl.load(right + start, is_there[:, None], 0.0), found
            )
    if CAP > 0:
        found = CAP * (2 * tl.sigmoid(found * (2 / CAP)) - 1)  # tanh
    return found


@triton.jit
def _statistics(
    hidden, weight, tokens, temperature, partial, part, own, count, vocabulary, tiles,
    SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, TOGETHER: tl.constexpr,
    CAP: tl.constexpr,
):  # fmt: skip
    row_tile, tile = _place(count, tiles, ROWS, TOGETHER)
    rows, columns = row_tile * ROWS + tl.arange(0, ROWS), tile * COLUMNS + tl.arange(0, COLUMNS)
    is_row = rows < count
    scores = _logits(hidden, weight, rows, columns, count, vocabulary, SIZE, ROWS, COLUMNS, INNER, CAP)
    scores *= (1.0 / tl.load(temperature + rows, is_row, 1.0).to(tl.float32))[:, None]
    token = tl.load(tokens + rows, is_row, -1)
    mine = tl.sum(tl.where(columns[None, :] == token[:, None], scores, 0.0), 1)
    tl.store(own + rows, mine, is_row & (token // COLUMNS == tile))
    if (tile + 1) * COLUMNS > vocabulary:
        scores = tl.where((columns < vocabulary)[None, :], scores, float("-inf"))
    peak = tl.maximum(tl.max(scores, 1), _LEAST)
    mass = tl.exp(scores - peak[:, None])
    to = partial + tile.to(tl.int64) * count + rows
    tl.store(to, peak, is_row)
    tl.store(to + part, tl.sum(mass, 1), is_row)
    tl.store(to + 2 * part, tl.sum(tl.where(mass > 0, scores * mass, 0.0), 1), is_row)


@triton.jit
def _combine(partial, part, logprobs, entropy, logsumexp, count, tiles, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_row = rows < count
    most = tl.full([ROWS], _LEAST, tl.float32)
    total, weighted = tl.zeros([ROWS], tl.float32), tl.zeros([ROWS], tl.float32)
    at = partial + rows
    for _ in range(0, tiles):
        peak = tl.load(at, is_row, 0.0)
        higher = tl.maximum(most, peak)
        fade, keep = tl.exp(most - higher), tl.exp(peak - higher)
        total = total * fade + tl.load(at + part, is_row, 1.0) * keep
        weighted = weighted * fade + tl.load(at + 2 * part, is_row, 0.0) * keep
        most = higher
        at += count
    level = most + tl.log(total)
    tl.store(logprobs + rows, tl.load(logprobs + rows, is_row, 0.0) - level, is_row)
    tl.store(entropy + rows, level - weighted / total, is_row)
    tl.store(logsumexp + rows, level, is_row)


@triton.jit
def _gradient(
    hidden, weight, tokens, of_logprob, of_entropy, entropy, logsumexp, temperature, d_logits,
    count, vocabulary, tiles,
    SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, TOGETHER: tl.constexpr,
    CAP: tl.constexpr,
):  # fmt: skip
    row_tile, tile = _place(count, tiles, ROWS, TOGETHER)
    rows, columns = row_tile * ROWS + tl.arange(0, ROWS), tile * COLUMNS + tl.arange(0, COLUMNS)
    is_row = rows < count
    scores = _logits(hidden, weight, rows, columns, count, vocabulary, SIZE, ROWS, COLUMNS, INNER, CAP)
    inverse = 1.0 / tl.load(temperature + rows, is_row, 1.0)
    pull, spread = tl.load(of_logprob + rows, is_row, 0.0) * inverse, tl.load(of_entropy + rows, is_row, 0.0) * inverse
    logprobs = scores * inverse[:, None] - tl.load(logsumexp + rows, is_row, 0.0)[:, None]
    bias = pull + spread * tl.load(entropy + rows, is_row, 0.0)
    found = -tl.exp(logprobs) * (bias[:, None] + spread[:, None] * logprobs)
    token = tl.load(tokens + rows, is_row, -1)
    found += tl.where(columns[None, :] == token[:, None], pull[:, None], 0.0)
    if CAP > 0:
        found *= 1 - (scores / CAP) * (scores / CAP)
    to = d_logits + rows.to(tl.int64)[:, None] * vocabulary + columns[None, :]
    tl.store(to, found.to(d_logits.dtype.element_ty), is_row[:, None] & (columns < vocabulary)[None, :])
