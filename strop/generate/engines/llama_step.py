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
from torch import Tensor, nn

from strop.attention import Packed, Plan
from strop.model import hidden_states

_FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


@dataclass(frozen=True)
class _Layer:
    attention: Any
    feed_forward: Any
    before_attention: Any
    before_feed_forward: Any
    qkv: tuple[Tensor, Tensor | None]
    gate_up: tuple[Tensor, Tensor | None]


class LlamaStep:
    """Same signature as `strop.model.hidden_states` without the model."""

    def __init__(self, model: Any) -> None:
        inner = model.base_model
        self._embedding = inner.embed_tokens
        self._rotary = inner.rotary_emb
        self._norm = inner.norm
        self._head_size = int(inner.layers[0].self_attn.head_dim)
        self._layers = [_layer(module) for module in inner.layers]

    def __call__(self, tokens: Tensor, positions: Tensor, plan: Plan) -> Tensor:
        """Packed tokens [T] -> last hidden states [T, hidden]."""
        state = self._embedding(tokens)
        cosine, sine = self._rotary(state, positions.unsqueeze(0))  # [1, T, D]
        cosine, sine = cosine.transpose(0, 1), sine.transpose(0, 1).clone()  # [T, 1, D]
        sine[..., : self._head_size // 2].neg_()
        for index, layer in enumerate(self._layers):
            state = state + self._attend(index, layer, _norm(layer.before_attention, state), cosine, sine, plan)
            gate, up = F.linear(_norm(layer.before_feed_forward, state), *layer.gate_up).chunk(2, -1)
            down = layer.feed_forward.down_proj
            state = state + F.linear(F.silu(gate).mul_(up), down.weight, down.bias)
        return _norm(self._norm, state)

    def _attend(self, index: int, layer: _Layer, state: Tensor, cosine: Tensor, sine: Tensor, plan: Plan) -> Tensor:
        module = layer.attention
        heads = F.linear(state, *layer.qkv).view(len(state), -1, self._head_size)  # [T, H + 2K, D]
        num_keys = module.k_proj.weight.shape[0] // self._head_size
        both, value = heads[:, :-num_keys], heads[:, -num_keys:]
        if hasattr(module, "q_norm"):
            query, key = both[:, :-num_keys], both[:, -num_keys:]
            both = torch.cat((_norm(module.q_norm, query), _norm(module.k_norm, key)), 1)
        both = torch.addcmul(
            both * cosine, both.roll(self._head_size // 2, -1), sine
        )  # rotary, with the sign in `sine`
        query, key = both[:, :-num_keys], both[:, -num_keys:]
        output = plan.attend(index, query, key, value, module.scaling, getattr(module, "sliding_window", None), None)
        return F.linear(output.reshape(len(state), -1), module.o_proj.weight, module.o_proj.bias)


def _norm(module: Any, state: Tensor) -> Tensor:
    return F.rms_norm(state, (state.shape[-1],), module.weight, module.variance_epsilon)


def _layer(module: Any) -> _Layer:
    attention, feed_forward = module.self_attn, module.mlp
    return _Layer(
        attention,
        feed_forward,
        module.input_layernorm,
        module.post_attention_layernorm,
        _fuse([attention.q_proj, attention.k_proj, attention.v_proj]),
        _fuse([feed_forward.gate_proj, feed_forward.up_proj]),
    )


def _fuse(linears: list[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """One matrix of several, of which the modules keep views."""
    weight = _joined([linear.weight for linear in linears])
    biases = [linear.bias for linear in linears if linear.bias is not None]
    return weight, _joined(biases) if biases else None


def _joined(parameters: list[Tensor]) -> Tensor:
    whole = torch.cat([parameter.detach() for parameter in parameters])
    sizes = [len(parameter) for parameter in parameters]
    for parameter, part in zip(parameters, torch.split(whole, sizes), strict=True):
        parameter.data = part
    return whole


@torch.no_grad()
def llama_step(model: Any) -> LlamaStep | None:
    """The quick step for this model, or None where the family is another or the proof against its own forward fails."""
    if type(model).__name__ not in _FAMILIES or model.config.hidden_act != "silu":
        return None
    step = LlamaStep(model)
    device = next(model.parameters()).device
    tokens = torch.arange(8, device=device) % model.config.vocab_size
    positions = torch.arange(8, device=device)
    ours = step(tokens, positions, Packed([8], device)).float()
    theirs = hidden_states(model, tokens, positions, Packed([8], device)).float()
    is_same = float((ours - theirs).abs().max()) <= _TOLERANCE[next(model.parameters()).dtype] * float(
        theirs.abs().max()
    )
    return step if is_same else None
