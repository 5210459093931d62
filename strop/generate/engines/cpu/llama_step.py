"""Weights of a Llama layer as the compiled CPU step reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strop.models.layers.block import Norm
from strop.models.layers.fused_linear import Linear, fuse

FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


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
        before_attention=_norm(module.input_layernorm),
        query_key_value=fuse(attention.q_proj, attention.k_proj, attention.v_proj),
        query_norm=_norm(attention.q_norm) if has_norms else None,
        key_norm=_norm(attention.k_norm) if has_norms else None,
        output=fuse(attention.o_proj),
        before_feed_forward=_norm(module.post_attention_layernorm),
        gate_up=fuse(feed_forward.gate_proj, feed_forward.up_proj),
        down=fuse(feed_forward.down_proj),
        num_key_heads=attention.k_proj.out_features // attention.head_dim,
        head_size=attention.head_dim,
        scale=attention.scaling,
        window=getattr(attention, "sliding_window", None),
    )


def _norm(module: Any) -> Norm:
    return Norm(module.weight.detach(), module.variance_epsilon)
