"""The forward pass of the Llama family over paged keys, from few large operations; the residual stream is float32.

Roundings stand where the trainer's mixed precision has them: both then differ by the order of sums alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.generate.engines.llama_step import FAMILIES, LayerParts, layer_of, products_of
from strop.kernels.adapted import Adapter, adapted
from strop.kernels.decode import PAGE, DecodeOperations, Rotation, TokenPlaces
from strop.kernels.nf4 import Scratch
from strop.models.adapters import is_adapted, masters, room_for
from strop.models.fused import Linear

_DYNAMIC = ("dynamic", "longrope")  # rotations that depend on how long a sequence has become


def why_not(model: Any) -> str:
    """Why this model cannot take the quick path; empty where it can."""
    config = model.config
    if type(model).__name__ not in FAMILIES:
        return f"{type(model).__name__} is none of {', '.join(FAMILIES)}"
    if config.hidden_act != "silu":
        return f"its activation is {config.hidden_act}, not silu"
    if getattr(config, "use_sliding_window", False):
        return "it has sliding windows"
    if str(getattr(model.base_model.rotary_emb, "rope_type", "default")) in _DYNAMIC:
        return "its rotary embedding depends on the length"
    size = model.base_model.layers[0].self_attn.head_dim
    return "" if size >= 16 and size & (size - 1) == 0 else f"its heads have {size} dimensions, no power of two"


class LayerAdapters(NamedTuple):
    """What stands beside the products of a layer."""

    query_key_value: Adapter | None
    output: Adapter | None
    gate_up: Adapter | None
    down: Adapter | None


def _adapters_of(module: Any, dtype: torch.dtype, scratch: Scratch) -> LayerAdapters:
    """Room of the engine's own: those of the model change while it samples."""
    products = products_of(module)
    return LayerAdapters(*(room_for(each, dtype, scratch) if is_adapted(each[0]) else None for each in products))


def _linear(state: Tensor, linear: Linear, adapter: Adapter | None) -> Tensor:
    if adapter is None:
        return F.linear(state, *linear)
    weight, bias = linear
    return adapted(state, weight if adapter.packed is None else adapter.packed.read(), bias, adapter)


@dataclass(eq=False)
class Cache:
    """Keys and values of every layer in pages."""

    keys: Tensor  # [L, pages, K, PAGE, D]
    values: Tensor

    @property
    def num_pages(self) -> int:
        return self.keys.shape[1]


class PagedLlama:
    """Weights are those of the Hugging Face model, so that loading new ones reaches both."""

    def __init__(self, model: Any, operations: DecodeOperations, context: int) -> None:
        inner = model.base_model
        self._operations = operations
        self._embedding: Tensor = model.get_input_embeddings().weight.detach()
        self._head: Tensor = model.get_output_embeddings().weight.detach()
        self._norm = inner.norm
        self._layers: list[LayerParts] = [layer_of(module) for module in inner.layers]
        scratch = Scratch(self._embedding.dtype)
        self._adapters = [_adapters_of(module, self._embedding.dtype, scratch) for module in inner.layers]
        self._rotations = self._rotation(inner.rotary_emb, context)

    def page_bytes(self) -> int:
        """Of one page over all layers."""
        layer = self._layers[0]
        return 2 * len(self._layers) * layer.num_key_heads * PAGE * layer.head_size * self._embedding.element_size()

    def cache(self, num_pages: int) -> Cache:
        layer = self._layers[0]
        shape = (len(self._layers), num_pages, layer.num_key_heads, PAGE, layer.head_size)
        return Cache(*(torch.zeros(shape, dtype=self._embedding.dtype, device=self._embedding.device) for _ in "kv"))

    def states(self, tokens: Tensor, where: TokenPlaces, cache: Cache) -> Tensor:
        """Packed tokens [T] -> last hidden states [T, hidden], normalised; their keys are in the cache afterwards."""
        does = self._operations
        residual = F.embedding(tokens, self._embedding).float()
        delta: Tensor | None = None
        parts = zip(self._layers, self._adapters, self._rotations, strict=True)
        for index, (layer, beside, rotation) in enumerate(parts):
            keys, values = cache.keys[index], cache.values[index]
            norm = layer.before_attention
            state = does.add_norm(residual, delta, norm.weight, norm.epsilon)
            heads = _linear(state, layer.query_key_value, beside.query_key_value).view(len(state), -1, layer.head_size)
            query = does.store(heads, keys, values, where, rotation)
            seen = does.attend(query, keys, values, where, layer.scale)
            delta = _linear(seen.view(len(state), -1), layer.output, beside.output)
            norm = layer.before_feed_forward
            state = does.add_norm(residual, delta, norm.weight, norm.epsilon)
            delta = _linear(does.swiglu(_linear(state, layer.gate_up, beside.gate_up)), layer.down, beside.down)
        return does.add_norm(residual, delta, self._norm.weight.detach(), self._norm.variance_epsilon)

    def adapters(self, model: Any) -> dict[str, Tensor]:
        """Those of the engine, by the names that the model's own have; none where it has none."""
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        found: dict[str, Tensor] = {}
        for module, beside in zip(model.base_model.layers, self._adapters, strict=True):
            for modules, adapter in zip(products_of(module), beside, strict=True):
                if adapter is not None:
                    found |= {names[id(e)]: part for e, part in zip(masters(modules), adapter.parts, strict=True)}
        return found

    def ends(self) -> tuple[Tensor, Tensor]:
        """The embedding of tokens and the head that scores them, both [V, hidden]."""
        return self._embedding, self._head

    def scores(self, hidden: Tensor) -> Tensor:
        """[T, hidden] -> [T, V] in float32."""
        return self._operations.scores(hidden, self._head)

    def _rotation(self, rotary: Any, context: int) -> list[Rotation]:
        positions = torch.arange(context, device=self._embedding.device).unsqueeze(0)
        whole = torch.zeros(1, dtype=torch.float32, device=self._embedding.device)  # only its dtype matters
        half = self._layers[0].head_size // 2
        cosine, sine = (each[0, :, :half].contiguous() for each in rotary(whole, positions))
        return [
            Rotation(
                cosine,
                sine,
                layer.query_norm.weight if layer.query_norm else None,
                layer.key_norm.weight if layer.key_norm else None,
                layer.query_norm.epsilon if layer.query_norm else 0.0,
            )
            for layer in self._layers
        ]
