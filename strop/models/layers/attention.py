"""Attention over packed sequences, behind the attention interface of transformers: its architectures run unchanged.

A model loaded with `attn_implementation="strop"` passes its queries, keys and values to the `AttentionPlan` of its
caller, which knows the sequence of each token. Here is the plan of a forward pass over whole sequences; an engine's
plan also has a KV cache. Layers that keep a state ask the same plan (`mixers.py`), as do routers of experts
(`routers.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from strop.models.layers.prefix_tree import Mixer, PrefixTree, similar
from strop.types import IntArray

NAME = "strop"


@dataclass(frozen=True, eq=False)
class Scoring:
    """Scores of an attention layer, and which keys a query sees."""

    scale: float
    window: int | None = None  # tokens that are seen, the last one included
    cap: float | None = None  # of scores
    chunk: int | None = None  # tokens are seen within their stretch of so many
    sinks: Tensor | None = None  # [H] the score of one more key, which has no value


class AttentionPlan(Protocol):
    """Layout of a forward pass: which tokens each token sees, and what it goes on from."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scoring: Scoring) -> Tensor:
        """query [T, H, D], key and value [T, K, D] -> [T, H, D]."""
        ...

    def mix(self, layer: int, mixer: Mixer, hidden: Tensor) -> Tensor:
        """Tokens [T, hidden] through a layer that keeps a state -> [T, hidden]."""
        ...

    def route(self, layer: int, chosen: Tensor) -> Tensor:
        """The experts [T, k] that tokens take in the `layer`-th of the layers with experts, where it chose these."""
        ...


_PLAN: ContextVar[Planned | None] = ContextVar("plan", default=None)


class Planned:
    """Context in which the modules of a model ask a plan; `positions` [T] of its tokens. May be entered again."""

    def __init__(self, plan: AttentionPlan, positions: Tensor | None = None) -> None:
        self.plan, self.positions = plan, positions
        self._tokens = list[Token[Planned | None]]()

    def __enter__(self) -> None:
        self._tokens.append(_PLAN.set(self))

    def __exit__(self, *_: object) -> None:
        _PLAN.reset(self._tokens.pop())


def current() -> Planned:
    if (found := _PLAN.get()) is None:
        raise RuntimeError("this model needs a plan of its tokens: call strop.models.model.hidden_states")
    return found


def current_plan() -> AttentionPlan:
    return current().plan


def recomputed() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts of a layer's forward pass and of the one that gradient checkpointing makes of it again, elsewhere."""
    return nullcontext(), current()


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    if _PLAN.get() is None and vars(module).get("is_causal") is False:  # a picture tower, which sees a whole picture
        seen = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
        return seen[0], None
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, H, D]
    scoring = Scoring(scale, sliding_window, softcap, _chunk(module, layer), s_aux)
    return current_plan().attend(layer, q, k, v, scoring).unsqueeze(0), None


def _chunk(module: Any, layer: int) -> int | None:
    """Chunks of a layer, of which transformers tells its masks alone."""
    config: Any = getattr(module, "config", None)
    kinds = getattr(config, "layer_types", None)
    return config.attention_chunk_size if kinds and kinds[layer] == "chunked_attention" else None


def register() -> None:
    """Make `attn_implementation="strop"` known to transformers."""
    AttentionInterface.register(NAME, _attention)


def within(sizes: Tensor, length: int, window: int | None) -> Tensor:
    """What tokens of segments see that see each other, whichever comes first: [B, 1, Q or 1, K] bool."""
    index = torch.arange(length, device=sizes.device)
    is_real = (index < sizes.unsqueeze(1))[:, None, None]
    return is_real if window is None else is_real & ((index.unsqueeze(1) - index).abs() < window)


def visible(
    query_positions: Tensor, key_positions: Tensor, scoring: Scoring, spans: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    """Causal mask, limited to a sliding window or a chunk where the layer has one: [..., Q, K] bool.

    With `spans` of queries and keys (-1: text) those of one picture see each other, as far as the window.
    """
    distance = query_positions.unsqueeze(-1) - key_positions.unsqueeze(-2)
    seen = distance >= 0
    if spans is not None:
        seen = seen | ((spans[0].unsqueeze(-1) == spans[1].unsqueeze(-2)) & (spans[0] >= 0).unsqueeze(-1))
    if scoring.chunk is not None:
        own = query_positions.div(scoring.chunk, rounding_mode="floor").unsqueeze(-1)
        seen &= own == key_positions.div(scoring.chunk, rounding_mode="floor").unsqueeze(-2)
    return seen if scoring.window is None else seen & (distance < scoring.window)


def masked_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scoring: Scoring) -> Tensor:
    """Attention [B, H, Q, D] over [B, K, L, D], where H is a multiple of K.

    `mask` says what is seen, or is added to scores; None means causal from the first token.
    """
    scale, cap, sinks = scoring.scale, scoring.cap, scoring.sinks
    is_grouped, is_plain = key.shape[1] != query.shape[1], cap is None and sinks is None
    if is_plain and mask is None:  # with a mask, only kernels that store all scores take grouped heads
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=is_grouped)
    if is_grouped:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    if is_plain:
        return F.scaled_dot_product_attention(query, key, value, mask, scale=scale)
    scores = query @ key.transpose(-1, -2) * scale
    scores = scores if cap is None else torch.tanh(scores / cap) * cap
    if mask is None:
        index = torch.arange(query.shape[-2], device=query.device)
        mask = visible(index, index, Scoring(scale))
    scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    if sinks is None:
        return scores.softmax(-1) @ value
    sunk = sinks.to(scores.dtype).view(1, query.shape[1], -1, 1).expand(*scores.shape[:3], 1)
    return torch.cat((scores, sunk), -1).softmax(-1)[..., :-1] @ value


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
        spans: IntArray | None = None,  # of each token of segments, the picture that it sees all of
    ) -> None:
        self._spans = list[Tensor | None]()  # [segments, length], of each block
        sizes = np.asarray(lengths, dtype=np.int64)
        self._mutual: list[Tensor | None] = []  # sizes of each block's segments, where they see each other
        starts = np.cumsum(sizes) - sizes
        self.blocks: list[tuple[int, int, Tensor | None]] = []  # segments, padded length, [segments * length] indices
        inverse = np.empty(int(sizes.sum()), dtype=np.int64)
        offset = 0
        for members in similar(sizes.tolist()):
            place = np.arange(sizes[members].max())
            is_real = place < sizes[members, None]  # [segments, length]
            # padding repeats a segment's own last token: one row for all padding would be a bottleneck backwards
            index = starts[members, None] + np.minimum(place, sizes[members, None] - 1)
            inverse[index[is_real]] = np.flatnonzero(is_real) + offset
            offset += index.size
            self._spans.append(None if spans is None else torch.from_numpy(spans[index]).to(device))
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
        self._segments = sizes, np.arange(sizes.sum()) if places is None else places, device
        self._tree: PrefixTree | None = None
        self.taken: Tensor | None = None  # [T, R] experts that tokens take, layer by layer; below 0: not known
        self.routes: dict[int, Tensor] = {}  # those that they took [T, k], by layer

    def mix(self, layer: int, mixer: Mixer, hidden: Tensor) -> Tensor:
        """Each segment from its first token on, or from where it branches off another."""
        if any(sizes is not None for sizes in self._mutual):
            raise RuntimeError("layers that keep a state read from left to right: such a model fills no masks")
        if self._tree is None:
            self._tree = PrefixTree(*self._segments)
        if self._tree.cost < sum(count * length for count, length, _ in self.blocks) and not mixer.module.is_stepwise:
            return self._tree.mix(mixer, hidden)
        outputs = []
        for count, length, index in self.blocks:
            part = (hidden if index is None else hidden.index_select(0, index)).view(count, length, -1)
            outputs.append(mixer(part, {})[0].flatten(0, 1))
        return outputs[0] if self.inverse is None else torch.cat(outputs).index_select(0, self.inverse)

    def route(self, layer: int, chosen: Tensor) -> Tensor:
        if self.taken is not None:
            taken = self.taken[:, layer * chosen.shape[1] : (layer + 1) * chosen.shape[1]]
            chosen = torch.where(taken < 0, chosen, taken) if taken.shape == chosen.shape else chosen
        self.routes[layer] = chosen
        return chosen

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scoring: Scoring) -> Tensor:
        outputs = []
        for (count, length, index), sizes, spans in zip(self.blocks, self._mutual, self._spans, strict=True):
            q, k, v = (
                (t if index is None else t.index_select(0, index)).view(count, length, *t.shape[1:]).transpose(1, 2)
                for t in (query, key, value)
            )
            reach = scoring.window
            mask = self._mask(length, scoring, query.device) if sizes is None else within(sizes, length, reach)
            if spans is not None:
                places = torch.arange(length, device=query.device)
                mask = visible(places, places, scoring, (spans, spans)).unsqueeze(1)
            output = masked_attention(q, k, v, mask, scoring)
            outputs.append(output.transpose(1, 2).flatten(0, 1))
        return outputs[0] if self.inverse is None else torch.cat(outputs).index_select(0, self.inverse)

    @staticmethod
    def _mask(length: int, scoring: Scoring, device: torch.device) -> Tensor | None:
        if all(reach is None or reach >= length for reach in (scoring.window, scoring.chunk)):
            return None
        index = torch.arange(length, device=device)
        return visible(index, index, scoring)
