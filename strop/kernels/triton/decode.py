"""Decode step in Triton: one pass over memory per kernel, and no wait for the host.

Imported only where there is a GPU (or Triton's interpreter). Each kernel equals its plain torch counterpart in
`decode`. Norm and activation are the trainer's kernels, and attention (`paged_attention`) sums in the trainer's order,
whatever else is in the batch.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.adapted import Adapter, add_beside
from strop.kernels.decode import PAGE, Rotation, Sheet, TokenPlaces
from strop.kernels.eight_bits import Eights, encode, multiplies_eights
from strop.kernels.linear import keep_sums_whole
from strop.kernels.sampling.sample_token import Draws
from strop.kernels.triton import adapted as few_adapted
from strop.kernels.triton import draw, in_order, norm, paged_attention, race, swiglu
from strop.kernels.triton.chain import chained, follow, release
from strop.kernels.triton.head_norms import factors, mean_squares
from strop.kernels.triton.norm_eight_bits import encode_norm


class Kernels:
    """`decode.DecodeOperations` on a GPU; tokens are sampled by inverse CDF, or by an exponential race."""

    def __init__(self, races: bool = False) -> None:
        keep_sums_whole()
        self._drawn = race.race if races else draw.draw
        self._is_own: dict[tuple[int | bool, ...], bool] = {}  # of shapes that were tried, who multiplies

    def add_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, offset: float = 0.0
    ) -> Tensor:
        return norm.forward(residual, delta, weight, epsilon, weight.dtype, is_in_place=True, offset=offset)[1]

    def add_norm_encoded(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, offset: float = 0.0
    ) -> Eights:
        if multiplies_eights(residual.device):
            return encode_norm(residual, delta, weight, epsilon, weight.dtype, offset)
        return encode(self.add_norm(residual, delta, weight, epsilon, offset))

    def store(self, heads: Tensor, keys: Tensor, values: Tensor, where: TokenPlaces, rotation: Rotation) -> Tensor:
        tokens, total, size = heads.shape
        num_keys = keys.shape[1]
        num_queries = total - 2 * num_keys
        query = torch.empty(tokens, num_queries, size, dtype=heads.dtype, device=heads.device)
        weight = heads  # never read without norms
        _store[(tokens,)](
            heads, query, keys, values, where.slots, where.positions, where.tables, where.tables.shape[1],
            rotation.cosine, rotation.sine,
            weight if rotation.query_norm is None else rotation.query_norm,
            weight if rotation.key_norm is None else rotation.key_norm,
            rotation.epsilon,
            HAS_NORM=rotation.query_norm is not None, OFFSET=rotation.offset,
            IS_WIDE=rotation.query_norm is not None and len(rotation.query_norm) > size,
            QUERIES=num_queries, KEYS=num_keys, HALF=size // 2, PAGE=PAGE,
            BLOCK=triton.next_power_of_2(num_queries + num_keys), VALUES=triton.next_power_of_2(num_keys), num_warps=4,
            enable_fp_fusion=False, **chained(tokens, heads.device),
        )  # fmt: skip
        return query

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, where: TokenPlaces, scale: float,
        window: int | None = None, cap: float | None = None,
    ) -> Tensor:  # fmt: skip
        return paged_attention.attend(query, keys, values, where, scale, window, cap)

    def linear(self, state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter | None = None) -> Tensor:
        if self._is_few(state, weight):
            if adapter is None:
                return in_order.product(state, weight, bias)
            return few_adapted.adapted(state, weight, bias, adapter)
        multiply = in_order.product if self._is_ours(state, weight, bias) else F.linear
        found = multiply(state, weight, bias)
        return found if adapter is None else add_beside(found, state, adapter)

    def gated(
        self, state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter | None, is_gelu: bool
    ) -> Tensor:
        if not self._is_few(state, weight):
            return self.swiglu(self.linear(state, weight, bias, adapter), is_gelu)
        if adapter is None:
            return in_order.gated(state, weight, bias, is_gelu)
        return few_adapted.adapted(state, weight, bias, adapter, is_gated=True, is_gelu=is_gelu)

    def _is_few(self, state: Tensor, weight: Tensor) -> bool:
        return len(state) <= in_order.FEW and in_order.can_multiply(state, weight)

    def _is_ours(self, state: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
        """Whether a product of so many rows is left to no library: one that is slow there, or adds in another order."""
        if len(state) > in_order.MOST or not in_order.can_multiply(state, weight):
            return False
        rows = triton.next_power_of_2(len(state))
        shape = (rows, *weight.shape, *weight.stride(), bias is not None)
        if shape not in self._is_own:
            self._is_own[shape] = not in_order.library_serves(rows, weight, bias)
        return self._is_own[shape]

    def swiglu(self, gate_up: Tensor, is_gelu: bool = False) -> Tensor:
        return swiglu.forward(gate_up, is_gelu)

    def scores(self, hidden: Tensor, weight: Tensor) -> Tensor:
        if hidden.dtype == torch.float32:
            return hidden @ weight.t()
        return torch.mm(hidden, weight.t(), out_dtype=torch.float32)  # bf16 scores would be rounded by up to 0.06

    def draw(self, scores: Tensor, how: Draws, positions: Tensor, is_truncated: bool) -> tuple[Tensor, Tensor]:
        return self._drawn(scores, how, positions, is_truncated)

    def write(
        self, sheet: Sheet, slots: Tensor, tokens: Tensor, logprobs: Tensor, counts: Tensor | None = None
    ) -> None:
        block, most = min(128, triton.next_power_of_2(len(slots))), 1 if counts is None else tokens.shape[1]
        _write[(triton.cdiv(len(slots), block),)](
            slots, tokens, logprobs, counts, tokens.stride(0), logprobs.stride(0), sheet.tokens, sheet.logprobs,
            sheet.versions, sheet.version, sheet.lengths, sheet.limits, sheet.is_active.view(torch.uint8), sheet.ends,
            len(sheet.ends), len(slots), sheet.tokens.shape[1], MOST=most, BLOCK=block, num_warps=4,
        )  # fmt: skip

    def pair(self, state: Tensor, tokens: Tensor, embedding: Tensor, epsilon: float) -> Tensor:
        count, size = state.shape
        both = torch.empty(count, 2 * size, dtype=embedding.dtype, device=state.device)
        width = triton.next_power_of_2(size)
        _pair[(count, 2)](state, tokens, embedding, both, epsilon, SIZE=size, WIDTH=width, num_warps=4)
        return both


@triton.jit
def _store(
    heads, query, keys, values, slots, positions, tables, width, cosine, sine, query_norm, key_norm, epsilon,
    HAS_NORM: tl.constexpr, OFFSET: tl.constexpr, IS_WIDE: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
    HALF: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, VALUES: tl.constexpr, IS_CHAINED: tl.constexpr,
):  # fmt: skip
    release(IS_CHAINED)
    follow(IS_CHAINED)
    token = tl.program_id(0).to(tl.int64)
    position = tl.load(positions + token)
    slot = tl.load(slots + token).to(tl.int64)
    page = tl.load(tables + slot * width + position // PAGE).to(tl.int64)
    SIZE: tl.constexpr = 2 * HALF
    row = heads + token * (QUERIES + 2 * KEYS) * SIZE
    head = tl.arange(0, BLOCK)
    half = tl.arange(0, HALF)
    kept = (head < QUERIES + KEYS)[:, None]
    place = head[:, None] * SIZE + half[None, :]
    first = tl.load(row + place, mask=kept, other=0.0).to(tl.float32)
    second = tl.load(row + place + HALF, mask=kept, other=0.0).to(tl.float32)
    if HAS_NORM:
        kind = heads.dtype.element_ty
        low, high = factors(query_norm, key_norm, head, half, kind, OFFSET, QUERIES, KEYS, HALF, IS_WIDE)
        mean = mean_squares(first, second, head, QUERIES, KEYS, HALF, BLOCK, IS_WIDE)
        factor = tl.rsqrt(mean + epsilon)[:, None]
        first = (first * factor).to(kind).to(tl.float32) * low
        second = (second * factor).to(kind).to(tl.float32) * high
    turn = tl.load(cosine + position * HALF + half)[None, :]
    lift = tl.load(sine + position * HALF + half)[None, :]
    low = (first * turn - second * lift).to(heads.dtype.element_ty)
    high = (second * turn + first * lift).to(heads.dtype.element_ty)
    is_query = (head < QUERIES)[:, None]
    written = query + token * QUERIES * SIZE + place
    tl.store(written, low, mask=is_query)
    tl.store(written + HALF, high, mask=is_query)
    is_key = kept & (head >= QUERIES)[:, None]
    target = (page * KEYS * PAGE + position % PAGE) * SIZE
    own = (head - QUERIES)[:, None] * PAGE * SIZE + half[None, :]
    tl.store(keys + target + own, low, mask=is_key)
    tl.store(keys + target + own + HALF, high, mask=is_key)
    other = tl.arange(0, VALUES)
    whole = tl.arange(0, SIZE)
    exists = (other < KEYS)[:, None]
    value = tl.load(row + (QUERIES + KEYS + other[:, None]) * SIZE + whole[None, :], mask=exists, other=0.0)
    tl.store(values + target + other[:, None] * PAGE * SIZE + whole[None, :], value, mask=exists)


@triton.jit
def _write(
    slots, drawn, probabilities, counts, drawn_step, probabilities_step, tokens, logprobs, versions, version, lengths,
    limits, is_active, ends, num_ends, count, context, MOST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = row < count
    slot = tl.load(slots + row, mask=exists, other=0)
    is_on = exists & (tl.load(is_active + slot, mask=exists, other=0) != 0)
    wrote = is_on
    length = tl.load(lengths + slot, mask=is_on, other=0)
    limit = tl.load(limits + slot, mask=is_on, other=0)
    for number in tl.static_range(MOST):
        writes = is_on
        if counts is not None:
            writes = writes & (tl.load(counts + row, mask=exists, other=0) > number)
        token = tl.load(drawn + row * drawn_step + number, mask=writes, other=0)
        place = slot * context + length
        tl.store(tokens + place, token.to(tl.int32), mask=writes)
        tl.store(
            logprobs + place,
            tl.load(probabilities + row * probabilities_step + number, mask=writes, other=0.0),
            mask=writes,
        )
        tl.store(versions + place, tl.load(version) + tl.zeros([BLOCK], tl.int32), mask=writes)
        length += writes.to(tl.int32)
        goes_on = length < limit
        for end in range(num_ends):
            goes_on = goes_on & (token != tl.load(ends + end))
        is_on = is_on & (goes_on | (writes == 0))
    tl.store(lengths + slot, length, mask=wrote)
    tl.store(is_active + slot, is_on.to(tl.uint8), mask=wrote)


@triton.jit
def _pair(state, tokens, embedding, both, epsilon, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    """The first half of a row from its state, the second from its token."""
    row, half, column = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.arange(0, WIDTH)
    mask = column < SIZE
    if half == 0:
        found = tl.load(state + row * SIZE + column, mask, 0.0).to(tl.float32)
    else:
        found = tl.load(embedding + tl.load(tokens + row).to(tl.int64) * SIZE + column, mask, 0.0).to(tl.float32)
    found *= tl.rsqrt(tl.sum(found * found, 0) / SIZE + epsilon)
    tl.store(both + (row * 2 + half) * SIZE + column, found.to(both.dtype.element_ty), mask)
