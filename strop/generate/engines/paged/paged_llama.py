"""Decoder forward pass over a paged KV cache, with a float32 residual stream.

Rounding occurs where the trainer's mixed precision rounds: both then differ only in the order of summation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.generate.engines.cpu.block_step import BlockParts, noted, routed
from strop.generate.engines.paged.draft_model import Ends
from strop.kernels.adapted import Adapter
from strop.kernels.attention import capped
from strop.kernels.decode import PAGE, DecodeOperations, Rotation, TokenPlaces
from strop.kernels.eight_bits import Eights, encode, encode_swiglu, multiply
from strop.kernels.nf4 import Scratch
from strop.kernels.returnable import Returnable
from strop.models.layers.adapters import is_adapted, masters, room_for
from strop.models.layers.block import DecoderBlock, Norm, described, why_undescribed
from strop.models.layers.eight_bit_linear import is_held, joined
from strop.models.layers.fused_linear import Linear

_DYNAMIC = ("dynamic", "longrope")  # rotations that depend on how long a sequence has become


def why_not(model: Any) -> str:
    """Why this model cannot take the fast path; empty where it can."""
    if reason := why_undescribed(model):
        return reason
    kinds = getattr(model.base_model.rotary_emb, "rope_type", "default")
    if any(kind in _DYNAMIC for kind in (kinds.values() if isinstance(kinds, dict) else (kinds,))):
        return "its rotary embedding depends on the length"
    size = model.base_model.layers[0].self_attn.head_dim
    return "" if size >= 16 and size & (size - 1) == 0 else f"its heads have {size} dimensions, no power of two"


class LayerAdapters(NamedTuple):
    """Per-layer LoRA terms added to matrix products, or quantized weights in their place."""

    query_key_value: Adapter | Eights | None
    output: Adapter | Eights | None
    gate_up: Adapter | Eights | None = None
    down: Adapter | Eights | None = None


def _adapters_of(block: DecoderBlock, dtype: torch.dtype, scratch: Scratch) -> LayerAdapters:
    """Room of the engine's own: those of the model change while it samples."""
    found: list[Adapter | Eights | None] = []
    for each in block.products:
        if is_adapted(each[0]):
            found.append(room_for(each, dtype, scratch))
        else:
            found.append(joined(each) if is_held(each[0]) else None)
    return LayerAdapters(*found)


def _read(linear: Linear, adapter: Adapter | None) -> Linear:
    """Weights in four bits are unpacked."""
    return linear if adapter is None or adapter.packed is None else (adapter.packed.read(), linear[1])


@dataclass(eq=False)
class Cache:
    """Paged keys and values of every layer."""

    keys: Tensor  # [L, pages, K, PAGE, D]
    values: Tensor
    routes: Tensor | None = None  # [pages, PAGE, R] int16, the experts that tokens went through, from 1 on
    place: Returnable | None = None  # where keys and values lie, if it can be given back

    def routes_of(self, pages: Sequence[int], length: int) -> NDArray[np.int16] | None:
        """Of the tokens in these pages [length, R]; the last one is not computed."""
        if self.routes is None:
            return None
        found = self.routes[torch.tensor(pages, device=self.routes.device)].flatten(0, 1)[:length].cpu().numpy()
        found[-1] = 0
        return found

    @property
    def num_pages(self) -> int:
        return self.keys.shape[1]


class PagedLlama:
    """Forward pass on the weights of the Hugging Face model, so that loading new ones updates both."""

    def __init__(self, model: Any, operations: DecodeOperations, context: int) -> None:
        self._operations, self._blocks = operations, described(model)
        self._embedding, self._head = self._blocks.embedding.detach(), self._blocks.head.detach()
        blocks, scratch = self._blocks.blocks, Scratch(self._blocks.embedding.dtype)
        self._layers = [BlockParts.of(block) for block in blocks]
        self._adapters = [_adapters_of(block, self._embedding.dtype, scratch) for block in blocks]
        self._heads = blocks[0].attention.heads
        self._rotations = self._rotation(context)

    def page_bytes(self) -> int:
        """Of one page over all layers."""
        keys = 2 * len(self._layers) * self._heads.keys * self._heads.size * self._embedding.element_size()
        return PAGE * (keys + 2 * self._blocks.num_routes)

    def cache(self, num_pages: int, is_returnable: bool = False) -> Cache:
        """Room for keys; one that can be given back is taken when it is first needed."""
        shape = (len(self._layers), num_pages, self._heads.keys, PAGE, self._heads.size)
        device, dtype, count = self._embedding.device, self._embedding.dtype, self._blocks.num_routes
        routes = torch.zeros(num_pages, PAGE, count, dtype=torch.int16, device=device) if count else None
        if not is_returnable:
            keys, values = (torch.zeros(shape, dtype=dtype, device=device) for _ in "kv")
            return Cache(keys, values, routes)
        place = Returnable(2 * math.prod(shape) * dtype.itemsize, device)
        keys, values = place.content.view(dtype).view(2, *shape)
        place.give_back()
        return Cache(keys, values, routes, place)

    def states(self, tokens: Tensor, where: TokenPlaces, cache: Cache) -> Tensor:
        """Packed tokens [T] -> last hidden states [T, hidden], normalised; their keys are in the cache afterwards."""
        does = self._operations
        residual = self._embedding[tokens.long()].float()
        if (scale := self._blocks.scale) != 1:
            residual *= scale
        delta: Tensor | None = None
        routes: list[Tensor] = []
        parts = zip(self._layers, self._adapters, self._rotations, strict=True)
        for index, (layer, beside, rotation) in enumerate(parts):
            block, attention = layer.block, layer.block.attention
            keys, values = cache.keys[index], cache.values[index]
            state = self._read_by(beside.query_key_value, residual, delta, block.before_attention)
            heads = self._linear(state, layer.query_key_value, beside.query_key_value)
            query = does.store(heads.view(len(tokens), -1, self._heads.size), keys, values, where, rotation)
            seen = does.attend(query, keys, values, where, attention.scale, attention.window, attention.cap)
            delta = self._linear(seen.view(len(tokens), -1), layer.output, beside.output)
            delta = self._behind(delta, block.after_attention)
            state = self._read_by(beside.gate_up, residual, delta, block.before_feed_forward)
            delta = self._behind(self._feed(layer, beside, state, routes), block.after_feed_forward)
        if cache.routes is not None:
            at = where.positions.long()
            cache.routes[where.tables[where.slots.long(), at // PAGE].long(), at % PAGE] = noted(routes)
        return self._normed(residual, delta, self._blocks.norm)

    def _feed(self, layer: BlockParts, beside: LayerAdapters, state: Tensor | Eights, routes: list[Tensor]) -> Tensor:
        """[T, hidden] -> [T, hidden]; experts that are taken are added to `routes`."""
        is_gelu, of_gate_up = layer.block.feed_forward.is_gelu, beside.gate_up
        if layer.gate_up is not None and isinstance(of_gate_up, Eights):
            assert layer.down is not None
            opened = encode_swiglu(self._linear(state, layer.gate_up, of_gate_up), is_gelu)
            return self._linear(opened, layer.down, beside.down)
        assert not isinstance(state, Eights) and not isinstance(of_gate_up, Eights)
        if layer.gate_up is None or layer.down is None:
            return routed(layer.block, state, routes)
        product = self._operations.gated(state, *_read(layer.gate_up, of_gate_up), of_gate_up, is_gelu)
        return self._linear(product, layer.down, beside.down)

    def _linear(self, state: Tensor | Eights, linear: Linear, adapter: Adapter | Eights | None) -> Tensor:
        if isinstance(adapter, Eights):
            held = state if isinstance(state, Eights) else encode(state)
            return multiply(held, adapter, linear[1], self._embedding.dtype)
        assert not isinstance(state, Eights)
        return self._operations.linear(state, *_read(linear, adapter), adapter)

    def _read_by(
        self, product: Adapter | Eights | None, residual: Tensor, delta: Tensor | None, norm: Norm | None
    ) -> Tensor | Eights:
        """`_normed`, in eight bits where that is what the next product multiplies."""
        if norm is None or not isinstance(product, Eights):
            return self._normed(residual, delta, norm)
        weight = norm.weight.detach()
        return self._operations.add_norm_encoded(residual, delta, weight, norm.epsilon, norm.offset)

    def _normed(self, residual: Tensor, delta: Tensor | None, norm: Norm | None) -> Tensor:
        """Add to the stream in place, and what the next part reads of it."""
        if norm is not None:
            return self._operations.add_norm(residual, delta, norm.weight.detach(), norm.epsilon, norm.offset)
        return (residual if delta is None else residual.add_(delta)).to(self._embedding.dtype)

    def _behind(self, added: Tensor, norm: Norm | None) -> Tensor:
        """What a part adds to the stream."""
        return added if norm is None else self._normed(added.float(), None, norm)

    def adapters(self, model: Any) -> dict[str, Tensor]:
        """Those of the engine, by the names that the model's own have; none where it has none."""
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        found: dict[str, Tensor] = {}
        for block, beside in zip(self._blocks.blocks, self._adapters, strict=True):
            for modules, adapter in zip(block.products, beside, strict=False):  # experts are no product with an adapter
                if isinstance(adapter, Adapter):
                    found |= {names[id(e)]: part for e, part in zip(masters(modules), adapter.parts, strict=True)}
        return found

    def ends(self) -> Ends:
        """What stands between tokens and states."""
        return Ends(self._embedding, self._head, self._blocks.cap)

    def scores(self, hidden: Tensor) -> Tensor:
        """[T, hidden] -> [T, V] in float32."""
        return capped(self._operations.scores(hidden, self._head), self._blocks.cap)

    def _rotation(self, context: int) -> list[Rotation]:
        positions = torch.arange(context, device=self._embedding.device)
        whole = torch.zeros(1, dtype=torch.float32, device=self._embedding.device)  # only its dtype matters
        angles = self._blocks.angles(whole, positions)
        found = []
        for block in self._blocks.blocks:
            turns, norms = angles[block.attention.angles], block.attention.head_norms
            if norms is None:
                found.append(Rotation(*turns, None, None, 0.0))
            else:
                weights = (norms[0].weight.detach(), norms[1].weight.detach())
                found.append(Rotation(*turns, *weights, norms[0].epsilon, norms[0].offset))
        return found
