"""Llama forward pass for CPUs in float32: matrix multiplications by torch, everything else in compiled C.

With few rows a step of many small torch operations takes three times as long as its matrix multiplications. Here each
token attends to its own row's keys directly, so lengths may differ without masks, padding or copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.generate.engines.cpu.kv_cache import Cached, KeyValues
from strop.kernels.cpu.build import LANES
from strop.kernels.cpu.decode import Decode, StepTokens, compiled_decode
from strop.models.layers import attention
from strop.models.layers.block import Norm
from strop.models.layers.fused_linear import Linear, fuse
from strop.models.model import hidden_states, probe

FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_DYNAMIC = ("dynamic", "longrope")  # rotations that depend on how long a sequence has become
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class LayerParts:
    """Weights of a pre-norm block."""

    before_attention: Norm
    query_key_value: Linear
    query_norm: Norm | None
    key_norm: Norm | None
    output: Linear
    before_feed_forward: Norm
    gate_up: Linear
    down: Linear
    num_key_heads: int
    head_size: int
    scale: float
    window: int | None


def layer_of(module: Any) -> LayerParts:
    attention, feed_forward = module.self_attn, module.mlp
    has_norms = hasattr(attention, "q_norm")
    return LayerParts(
        before_attention=_norm_of(module.input_layernorm),
        query_key_value=fuse(attention.q_proj, attention.k_proj, attention.v_proj),
        query_norm=_norm_of(attention.q_norm) if has_norms else None,
        key_norm=_norm_of(attention.k_norm) if has_norms else None,
        output=fuse(attention.o_proj),
        before_feed_forward=_norm_of(module.post_attention_layernorm),
        gate_up=fuse(feed_forward.gate_proj, feed_forward.up_proj),
        down=fuse(feed_forward.down_proj),
        num_key_heads=attention.k_proj.out_features // attention.head_dim,
        head_size=attention.head_dim,
        scale=attention.scaling,
        window=getattr(attention, "sliding_window", None),
    )


def _norm_of(module: Any) -> Norm:
    return Norm(module.weight.detach(), module.variance_epsilon)


class CompiledLlama:
    """Forward pass with the signature of `BlockStep`; weights are those of the Hugging Face model."""

    def __init__(self, model: Any, decode: Decode) -> None:
        inner = model.base_model
        self._decode = decode
        self._embedding: Tensor = inner.embed_tokens.weight.detach()
        self._rotary = inner.rotary_emb
        self._turns = (torch.empty(0, 0), torch.empty(0, 0))  # cosine and sine [C, D / 2]
        self._layers: list[LayerParts] = [layer_of(module) for module in inner.layers]
        first = self._layers[0]
        # of the heads, what they saw, gate and up together, and the one gated by the other
        wide, narrow = (first.query_key_value, first.gate_up), (first.output, first.down)
        self._widths = [width for w, n in zip(wide, narrow, strict=True) for width in (len(w[0]), n[0].shape[1])]
        self._norm: Tensor = inner.norm.weight.detach()
        self._epsilon: float = inner.norm.variance_epsilon

    def __call__(self, tokens: Tensor, positions: Tensor, plan: Cached) -> Tensor:
        """Packed tokens [T] -> last hidden states [T, hidden]; their keys are in the plan's memory afterwards."""
        does = self._decode
        self._turn_up_to(plan.memory.capacity)
        step = self._step(plan)
        residual = F.embedding(tokens, self._embedding)
        # one set of buffers for all layers: they stay in the cache, and nothing is allocated between two products
        state, delta = torch.empty_like(residual), torch.empty_like(residual)
        heads, seen, gate_up, gated = (residual.new_empty(len(tokens), width) for width in self._widths)
        for index, layer in enumerate(self._layers):
            norm = layer.before_attention
            does.add_norm(residual, delta if index else None, norm.weight, norm.epsilon, state)
            self._attend(step, index, plan, multiplied(state, layer.query_key_value, heads), seen)
            multiplied(seen, layer.output, delta)
            norm = layer.before_feed_forward
            does.add_norm(residual, delta, norm.weight, norm.epsilon, state)
            does.swiglu(multiplied(state, layer.gate_up, gate_up), gated)
            multiplied(gated, layer.down, delta)
        return does.add_norm(residual, delta, self._norm, self._epsilon, state)

    def _attend(self, step: StepTokens, index: int, plan: Cached, heads: Tensor, seen: Tensor) -> None:
        layer = self._layers[index]
        key = heads.view(len(heads), -1, layer.head_size)[:, -layer.num_key_heads :]  # [T, K, D]
        keys, values = plan.memory.layer(index, key, key)
        step.heads, step.keys, step.values = heads.data_ptr(), keys.data_ptr(), values.data_ptr()
        query_norm, key_norm = layer.query_norm, layer.key_norm
        norms = (
            (query_norm.weight, key_norm.weight, query_norm.epsilon) if query_norm and key_norm else (None, None, 0.0)
        )
        self._decode.store(step, *self._turns, *norms)
        for share in plan.shares:
            for destination in share.destinations:
                self._decode.share(step, share.source, destination, share.length)
        self._decode.attend(step, layer.scale, layer.window, seen)

    def _step(self, plan: Cached) -> StepTokens:
        layer = self._layers[0]
        num_heads = len(layer.query_key_value[0]) // layer.head_size - 2 * layer.num_key_heads
        sizes = (len(plan.rows), num_heads, layer.num_key_heads, layer.head_size, plan.memory.capacity)
        return StepTokens(*sizes, plan.rows.data_ptr(), plan.positions.data_ptr())

    def _turn_up_to(self, capacity: int) -> None:
        """Angles of every position that memory has room for."""
        if len(self._turns[0]) < capacity:
            half = self._layers[0].head_size // 2
            whole = self._rotary(self._embedding, torch.arange(capacity).unsqueeze(0))
            self._turns = tuple(each[0, :, :half].contiguous() for each in whole)


def multiplied(state: Tensor, linear: Linear, out: Tensor) -> Tensor:
    """A linear layer into memory that is there already."""
    weight, bias = linear
    return torch.mm(state, weight.t(), out=out) if bias is None else torch.addmm(bias, state, weight.t(), out=out)


Step = TypeVar("Step", bound=CompiledLlama)


@torch.no_grad()
def compiled_llama(model: Any) -> CompiledLlama | None:
    """The step for this model, or None where something else is needed."""
    decode = compiled_decode() if is_simple(model) else None
    return None if decode is None else proven(CompiledLlama(model, decode), model)


def proven(step: Step, model: Any) -> Step | None:
    """None if what it computes is not what the model's own forward pass does."""
    positions = torch.arange(8)
    tokens = probe(model, len(positions))
    plan = Cached(KeyValues(1, len(positions)), torch.zeros_like(positions), positions, (), list)
    ours = step(tokens, positions, plan)
    theirs = hidden_states(model, tokens, positions, attention.Packed([8]))
    return step if float((ours - theirs).abs().max()) <= _TOLERANCE * float(theirs.abs().max()) else None


def is_simple(model: Any) -> bool:
    weight = model.get_input_embeddings().weight
    if type(model).__name__ not in FAMILIES or weight.dtype != torch.float32 or weight.device.type != "cpu":
        return False
    inner = model.base_model
    is_dynamic = str(getattr(inner.rotary_emb, "rope_type", "default")) in _DYNAMIC
    size = inner.layers[0].self_attn.head_dim
    return model.config.hidden_act == "silu" and not is_dynamic and size % LANES == 0
