"""Reference decode step over a paged KV cache in plain torch; the kernels of `triton.decode` must equal it.

Keys lie in pages of `PAGE` tokens, so that sequences with the same prompt share its pages; the page table of a slot
lists its pages in order. `TokenPlaces` has the slot and the position of each packed token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels.adapted import Adapter, adapted
from strop.kernels.attention import capped
from strop.kernels.eight_bits import Eights, encode
from strop.kernels.sampling.exponential_race import race
from strop.kernels.sampling.sample_token import Draws, draw
from strop.kernels.swiglu import reference_forward

PAGE = 16  # tokens of one page


@dataclass(frozen=True, eq=False)
class TokenPlaces:
    """Slot and position of each packed token [T]; `tables` [S, M] are the page tables of all slots."""

    slots: Tensor  # [T] int32
    positions: Tensor  # [T] int32
    tables: Tensor  # [S, M] int32
    runs: Tensor | None = None  # [N, 3] int32: first packed token, slot's first position, count; None: one token a slot


@dataclass(frozen=True, eq=False)
class Rotation:
    """Rotary embedding of queries and keys, after a norm where the model family has one.

    A norm is of each head, or of all heads of a token together where its weight is as wide as they are.
    """

    cosine: Tensor  # [C, D / 2] float32
    sine: Tensor  # [C, D / 2] float32
    query_norm: Tensor | None
    key_norm: Tensor | None
    epsilon: float
    offset: float = 0.0  # to the norms' weights


@dataclass(frozen=True, eq=False)
class Sheet:
    """Sampled tokens of each slot and its stop conditions; rows are slots."""

    tokens: Tensor  # [S, C] int32
    logprobs: Tensor  # [S, C] float32
    versions: Tensor  # [S, C] int32
    lengths: Tensor  # [S] int32
    limits: Tensor  # [S] int32
    is_active: Tensor  # [S] bool
    version: Tensor  # [1] int32
    ends: Tensor  # [E] int64, the tokens that end a completion


class DecodeOperations(Protocol):
    """Operations of a decode step."""

    def add_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, offset: float = 0.0
    ) -> Tensor:
        """Add `delta` to the residual [T, hidden] (float32) in place; its normalised state in the weight's dtype."""
        ...

    def add_norm_encoded(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, offset: float = 0.0
    ) -> Eights:
        """What eight bits hold of `add_norm`."""
        ...

    def store(self, heads: Tensor, keys: Tensor, values: Tensor, where: TokenPlaces, rotation: Rotation) -> Tensor:
        """heads [T, H + 2K, D] -> turned queries [T, H, D]; turned keys and values go to pages [pages, K, PAGE, D]."""
        ...

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, where: TokenPlaces, scale: float,
        window: int | None = None, cap: float | None = None,
    ) -> Tensor:  # fmt: skip
        """[T, H, D] -> [T, H, D], each token seeing its slot up to itself, the last `window` tokens of it."""
        ...

    def linear(self, state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter | None = None) -> Tensor:
        """[T, I], [O, I], [O] -> [T, O]."""
        ...

    def gated(
        self, state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter | None, is_gelu: bool
    ) -> Tensor:
        """`swiglu` of the linear layer that gives gate and up."""
        ...

    def swiglu(self, gate_up: Tensor, is_gelu: bool = False) -> Tensor:
        """[T, 2F] -> [T, F]."""
        ...

    def scores(self, hidden: Tensor, weight: Tensor) -> Tensor:
        """[T, hidden], [V, hidden] -> [T, V] in float32."""
        ...

    def draw(self, scores: Tensor, how: Draws, positions: Tensor, is_truncated: bool) -> tuple[Tensor, Tensor]:
        """A token per row from its own random stream, and its logprob; temperature 0 takes the likeliest.

        Top-k and top-p are looked at only where some row is truncated.
        """
        ...

    def write(
        self, sheet: Sheet, slots: Tensor, tokens: Tensor, logprobs: Tensor, counts: Tensor | None = None
    ) -> None:
        """Append one token [T] to every active one of these slots [T], and end those that are over.

        Or the first so many [T] of several [T, N], as far as a slot is not over before.
        """
        ...

    def pair(self, state: Tensor, tokens: Tensor, embedding: Tensor, epsilon: float) -> Tensor:
        """State [T, hidden] and the embedding of a token [T], each normalised, as [T, 2 hidden] in its dtype."""
        ...


class Plain:
    """`DecodeOperations` in plain torch; tokens are sampled by inverse CDF, or by an exponential race."""

    def __init__(self, races: bool = False) -> None:
        self._drawn = race if races else draw

    def add_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, offset: float = 0.0
    ) -> Tensor:
        if delta is not None:
            residual.add_(delta)
        factor = weight.float() + offset if offset else weight.float()
        return F.rms_norm(residual, weight.shape, factor, epsilon).to(weight.dtype)

    def add_norm_encoded(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, offset: float = 0.0
    ) -> Eights:
        return encode(self.add_norm(residual, delta, weight, epsilon, offset))

    def store(self, heads: Tensor, keys: Tensor, values: Tensor, where: TokenPlaces, rotation: Rotation) -> Tensor:
        num_keys = keys.shape[1]
        query, key, value = heads[:, : -2 * num_keys], heads[:, -2 * num_keys : -num_keys], heads[:, -num_keys:]
        query, key = _normed(query, rotation.query_norm, rotation), _normed(key, rotation.key_norm, rotation)
        at = where.positions.long()
        cosine, sine = rotation.cosine[at].unsqueeze(1), rotation.sine[at].unsqueeze(1)  # [T, 1, D / 2]
        pages = where.tables[where.slots.long(), at // PAGE].long()
        keys[pages, :, at % PAGE] = _turned(key, cosine, sine).to(keys.dtype)
        values[pages, :, at % PAGE] = value
        return _turned(query, cosine, sine).to(heads.dtype)

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, where: TokenPlaces, scale: float,
        window: int | None = None, cap: float | None = None,
    ) -> Tensor:  # fmt: skip
        length = int(where.positions.max()) + 1
        pages = where.tables[where.slots.long(), : -(-length // PAGE)].long()  # [T, N]
        index = torch.arange(pages.shape[1] * PAGE, device=query.device)
        mask = (index <= where.positions.unsqueeze(1))[:, None, None]  # [T, 1, 1, L]
        if window is not None:
            mask &= (index > where.positions.unsqueeze(1) - window)[:, None, None]
        # what nobody sees may be no number, and 0 times that is none
        key, value = (
            each[pages].transpose(1, 2).flatten(2, 3).where(mask.transpose(2, 3), 0) for each in (keys, values)
        )  # [T, K, L, D]
        if cap is None:
            output = F.scaled_dot_product_attention(query.unsqueeze(2), key, value, mask, scale=scale, enable_gqa=True)
            return output.squeeze(2)
        grouped = query.view(len(query), key.shape[1], -1, query.shape[2])  # [T, K, H / K, D]
        scores = capped((grouped @ key.transpose(2, 3)).float() * scale, cap).masked_fill(~mask, float("-inf"))
        return (scores.softmax(-1).to(value.dtype) @ value).flatten(1, 2)

    def linear(self, state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter | None = None) -> Tensor:
        return F.linear(state, weight, bias) if adapter is None else adapted(state, weight, bias, adapter)

    def gated(
        self, state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter | None, is_gelu: bool
    ) -> Tensor:
        return self.swiglu(self.linear(state, weight, bias, adapter), is_gelu)

    def swiglu(self, gate_up: Tensor, is_gelu: bool = False) -> Tensor:
        return reference_forward(gate_up, is_gelu)

    def scores(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return F.linear(hidden, weight).float()

    def draw(self, scores: Tensor, how: Draws, positions: Tensor, is_truncated: bool) -> tuple[Tensor, Tensor]:
        return self._drawn(scores, how, positions, is_truncated)

    def write(
        self, sheet: Sheet, slots: Tensor, tokens: Tensor, logprobs: Tensor, counts: Tensor | None = None
    ) -> None:
        if counts is None:
            return _appended(sheet, slots, tokens, logprobs)
        for place in range(tokens.shape[1]):
            is_meant = place < counts
            _appended(sheet, slots[is_meant], tokens[is_meant, place], logprobs[is_meant, place])
        return None

    def pair(self, state: Tensor, tokens: Tensor, embedding: Tensor, epsilon: float) -> Tensor:
        return side_by_side(state, F.embedding(tokens, embedding), epsilon).to(embedding.dtype)


def side_by_side(state: Tensor, embedded: Tensor, epsilon: float) -> Tensor:
    """Two times [T, hidden], each normalised, as [T, 2 hidden] in float32."""
    return torch.cat([F.rms_norm(each.float(), each.shape[-1:], eps=epsilon) for each in (state, embedded)], -1)


def _appended(sheet: Sheet, slots: Tensor, tokens: Tensor, logprobs: Tensor) -> None:
    is_active = sheet.is_active[slots]
    slots, tokens, logprobs = slots[is_active], tokens[is_active], logprobs[is_active]
    at = sheet.lengths[slots].long()
    sheet.tokens[slots, at], sheet.logprobs[slots, at] = tokens.int(), logprobs
    sheet.versions[slots, at] = sheet.version
    sheet.lengths[slots] += 1
    sheet.is_active[slots] = (at + 1 < sheet.limits[slots]) & ~torch.isin(tokens, sheet.ends)


def _normed(heads: Tensor, weight: Tensor | None, rotation: Rotation) -> Tensor:
    if weight is None:
        return heads
    wide = heads.float().reshape(len(heads), -1, len(weight))  # one row of all heads, or one for each
    # rounded before the weight, as transformers does
    normal = F.rms_norm(wide, weight.shape, None, rotation.epsilon).to(heads.dtype).float()
    return (normal * (weight.float() + rotation.offset)).view(heads.shape)


def _turned(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary embedding in float32."""
    first, second = heads.float().chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)
