"""Attention over packed sequences, behind the attention interface of transformers: its architectures run unchanged.

A model loaded with `attn_implementation="strop"` passes its queries, keys and values to the `AttentionPlan` of its
caller, which knows the sequence of each token. Here is the plan of a forward pass over whole sequences; an engine's
plan also has a KV cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from strop.types import IntArray

NAME = "strop"
_MAX_WASTE = 1.25  # padded over real tokens within one block


class AttentionPlan(Protocol):
    """Attention of a forward pass, with the keys that each query sees."""

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None, cap: float | None
    ) -> Tensor:
        """query [T, H, D], key and value [T, K, D] -> [T, H, D]."""
        ...


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    plan: AttentionPlan | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    if plan is None and vars(module).get("is_causal") is False:  # a picture tower, which sees a whole picture
        seen = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
        return seen[0], None
    if plan is None:
        raise RuntimeError("strop attention needs a plan: call strop.models.model.hidden_states")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, H, D]
    return plan.attend(layer, q, k, v, scale, sliding_window, softcap).unsqueeze(0), None


def register() -> None:
    """Make `attn_implementation="strop"` known to transformers."""
    AttentionInterface.register(NAME, _attention)


def within(sizes: Tensor, length: int, window: int | None) -> Tensor:
    """What tokens of segments see that see each other, whichever comes first: [B, 1, Q or 1, K] bool."""
    index = torch.arange(length, device=sizes.device)
    is_real = (index < sizes.unsqueeze(1))[:, None, None]
    return is_real if window is None else is_real & ((index.unsqueeze(1) - index).abs() < window)


def visible(query_positions: Tensor, key_positions: Tensor, window: int | None) -> Tensor:
    """Causal mask, limited to a sliding window where the layer has one: [..., Q, K] bool."""
    distance = query_positions.unsqueeze(-1) - key_positions.unsqueeze(-2)
    seen = distance >= 0
    return seen if window is None else seen & (distance < window)


def masked_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, cap: float | None
) -> Tensor:
    """Attention [B, H, Q, D] over [B, K, L, D], where H is a multiple of K.

    `mask` says what is seen, or is added to scores; None means causal from the first token.
    """
    is_grouped = key.shape[1] != query.shape[1]
    if cap is None and mask is None:  # with a mask, only kernels that store all scores take grouped heads
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=is_grouped)
    if is_grouped:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    if cap is None:
        return F.scaled_dot_product_attention(query, key, value, mask, scale=scale)
    scores = torch.tanh(query @ key.transpose(-1, -2) * scale / cap) * cap
    if mask is None:
        index = torch.arange(query.shape[-2], device=query.device)
        mask = visible(index, index, None)
    scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ value


class Packed:
    """Attention within each segment of a packed row: causal, or bidirectional where `is_mutual`.

    Segments of similar length are padded to blocks. Padding is on the right and attention is causal (or masked), so no
    real token sees it, and the rest of the network never computes it. `places` maps tokens of segments to tokens given
    to the network, where segments share some; each of these belongs to a segment.
    """

    def __init__(
        self,
        lengths: Sequence[int] | IntArray,
        device: torch.device | str = "cpu",
        places: IntArray | None = None,
        is_mutual: bool = False,
    ) -> None:
        sizes = np.asarray(lengths, dtype=np.int64)
        self._mutual: list[Tensor | None] = []  # sizes of each block's segments, where they see each other
        starts = np.cumsum(sizes) - sizes
        self.blocks: list[tuple[int, int, Tensor | None]] = []  # segments, padded length, [segments * length] indices
        inverse = np.empty(int(sizes.sum()), dtype=np.int64)
        offset = 0
        for members in _similar(sizes.tolist()):
            place = np.arange(sizes[members].max())
            is_real = place < sizes[members, None]  # [segments, length]
            # padding repeats a segment's own last token: one row for all padding would be a bottleneck backwards
            index = starts[members, None] + np.minimum(place, sizes[members, None] - 1)
            inverse[index[is_real]] = np.flatnonzero(is_real) + offset
            offset += index.size
            index = index if places is None else places[index]
            self.blocks.append((*index.shape, torch.from_numpy(index.reshape(-1)).to(device)))
            self._mutual.append(torch.from_numpy(sizes[members]).to(device) if is_mutual else None)
        if places is not None:
            inverse = inverse[np.unique(places, return_index=True)[1]]
        # equal lengths in order need no gathering at all
        is_identity = len(self.blocks) == 1 and offset == len(inverse) and bool((np.diff(inverse) == 1).all())
        if is_identity:
            self.blocks = [(self.blocks[0][0], self.blocks[0][1], None)]
        self.inverse = None if is_identity else torch.from_numpy(inverse).to(device)

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None, cap: float | None
    ) -> Tensor:
        outputs = []
        for (count, length, index), sizes in zip(self.blocks, self._mutual, strict=True):
            q, k, v = (
                (t if index is None else t.index_select(0, index)).view(count, length, *t.shape[1:]).transpose(1, 2)
                for t in (query, key, value)
            )
            mask = self._mask(length, window, query.device) if sizes is None else within(sizes, length, window)
            output = masked_attention(q, k, v, mask, scale, cap)
            outputs.append(output.transpose(1, 2).flatten(0, 1))
        return outputs[0] if self.inverse is None else torch.cat(outputs).index_select(0, self.inverse)

    @staticmethod
    def _mask(length: int, window: int | None, device: torch.device) -> Tensor | None:
        if window is None or window >= length:
            return None
        index = torch.arange(length, device=device)
        return visible(index, index, window)


def _similar(lengths: Sequence[int]) -> list[list[int]]:
    """Members of each block, so that padding to the longest wastes little."""
    blocks: list[list[int]] = []
    real = 0
    for member in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        size = lengths[member]
        if blocks and (len(blocks[-1]) + 1) * size <= _MAX_WASTE * (real + size):
            blocks[-1].append(member)
            real += size
        else:
            blocks.append([member])
            real = size
    return blocks
