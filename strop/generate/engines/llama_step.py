"""The forward pass of the Llama family written out by hand, over the very weights of the Hugging Face model.

For small models and few rows a step is mostly Python and module calls; this one has a third of them. Projections that
read the same input are fused by making the module's parameters views of one matrix, so nothing is stored twice and a
weight update reaches both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.models.attention import AttentionPlan, Packed
from strop.models.fused import Linear, fuse
from strop.models.model import hidden_states, probe

FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


@dataclass(frozen=True)
class Norm:
    """Root-mean-square normalisation over the last dimension."""

    weight: Tensor
    epsilon: float

    def __call__(self, state: Tensor) -> Tensor:
        return F.rms_norm(state, self.weight.shape, self.weight, self.epsilon)


@dataclass(frozen=True)
class LayerParts:
    """What a layer needs, looked up once: attributes of modules are slow to reach."""

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

    def attend(self, index: int, state: Tensor, cosine: Tensor, sine: Tensor, plan: AttentionPlan) -> Tensor:
        """[T, hidden] -> [T, hidden]."""
        keys = self.num_key_heads
        heads = F.linear(state, *self.query_key_value).view(len(state), -1, self.head_size)  # [T, H + 2K, D]
        both, value = heads[:, :-keys], heads[:, -keys:]
        if self.query_norm and self.key_norm:
            both = torch.cat((self.query_norm(both[:, :-keys]), self.key_norm(both[:, -keys:])), 1)
        both = torch.addcmul(both * cosine, both.roll(self.head_size // 2, -1), sine)  # rotary
        seen = plan.attend(index, both[:, :-keys], both[:, -keys:], value, self.scale, self.window, None)
        return F.linear(seen.reshape(len(state), -1), *self.output)

    def feed_forward(self, state: Tensor) -> Tensor:
        gate, up = F.linear(state, *self.gate_up).chunk(2, -1)
        return F.linear(F.silu(gate).mul_(up), *self.down)


class LlamaStep:
    """Same signature as `strop.models.model.hidden_states` without the model."""

    def __init__(self, model: Any) -> None:
        inner = model.base_model
        self._embedding = inner.embed_tokens
        self._rotary = inner.rotary_emb
        self._norm = _norm(inner.norm)
        self._layers = [layer_of(module) for module in inner.layers]

    def __call__(self, tokens: Tensor, positions: Tensor, plan: AttentionPlan) -> Tensor:
        """Packed tokens [T] -> last hidden states [T, hidden]."""
        state = self._embedding(tokens)
        cosine, sine = self._rotary(state, positions.unsqueeze(0))  # [1, T, D]
        cosine, sine = cosine.transpose(0, 1), sine.transpose(0, 1).clone()  # [T, 1, D]
        # rotating halves (a, b) to (-b, a) is rolling them, with the sign here
        sine[..., : sine.shape[-1] // 2].neg_()
        for index, layer in enumerate(self._layers):
            state = state + layer.attend(index, layer.before_attention(state), cosine, sine, plan)
            state = state + layer.feed_forward(layer.before_feed_forward(state))
        return self._norm(state)


def products_of(module: Any) -> tuple[tuple[Any, ...], ...]:
    """Linear layers that read the same input: queries, keys and values; output; gate and up; down."""
    attention, feed_forward = module.self_attn, module.mlp
    return (
        (attention.q_proj, attention.k_proj, attention.v_proj), (attention.o_proj,),
        (feed_forward.gate_proj, feed_forward.up_proj), (feed_forward.down_proj,),
    )  # fmt: skip


def layer_of(module: Any) -> LayerParts:
    attention = module.self_attn
    query_key_value, output, gate_up, down = (fuse(*each) for each in products_of(module))
    has_norms = hasattr(attention, "q_norm")
    return LayerParts(
        before_attention=_norm(module.input_layernorm),
        query_key_value=query_key_value,
        query_norm=_norm(attention.q_norm) if has_norms else None,
        key_norm=_norm(attention.k_norm) if has_norms else None,
        output=output,
        before_feed_forward=_norm(module.post_attention_layernorm),
        gate_up=gate_up,
        down=down,
        num_key_heads=attention.k_proj.out_features // attention.head_dim,
        head_size=attention.head_dim,
        scale=attention.scaling,
        window=getattr(attention, "sliding_window", None),
    )


def _norm(module: Any) -> Norm:
    return Norm(module.weight.detach(), module.variance_epsilon)


@torch.no_grad()
def llama_step(model: Any) -> LlamaStep | None:
    """The quick step for this model, or None where the family is another or the proof against its own forward fails."""
    if type(model).__name__ not in FAMILIES or model.config.hidden_act != "silu":
        return None
    step = LlamaStep(model)
    weight = model.get_input_embeddings().weight
    positions = torch.arange(8, device=weight.device)
    tokens, plan = probe(model, 8), Packed([8], weight.device)
    ours = step(tokens, positions, plan).float()
    theirs = hidden_states(model, tokens, positions, plan).float()
    is_same = float((ours - theirs).abs().max()) <= _TOLERANCE[weight.dtype] * float(theirs.abs().max())
    return step if is_same else None
