"""The forward pass of the Llama family for training, over the very parameters of the Hugging Face model.

Weights and their gradients are float32; they are rounded once after they changed, projections that read the same input
as one matrix. Weights beside which adapters learn are held in what is computed in, and read in place. What is between
two products runs in one kernel each, rounds where an engine with weights of that type does, and keeps for the way back
only what cannot be made again cheaply. The residual stream is float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.kernels.attention import Heads, Varlen, takes
from strop.kernels.logprobs import token_logprobs
from strop.kernels.nf4 import Scratch
from strop.kernels.norm import backward as norm_backward
from strop.models.adapters import is_adapted, masters, room_for
from strop.models.attention import AttentionPlan, Packed
from strop.models.four_bits import FourBitLinear
from strop.models.fused import fuse, stacked
from strop.models.model import hidden_states, probe
from strop.training.machine.llama_layer import AdaptedProjection, Layer, NormWeight, PassTokens, Projection

_FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1}
_AFTER_LOGITS = ("logit_scale", "logits_scaling", "final_logit_softcapping")  # what some families do to logits


class Rounding:
    """Copies of parameters in another type, those of one product as one matrix; made anew when any has changed."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.scratch = Scratch(dtype)  # of weights in four bits
        self._sources: list[Tensor] = []
        self._targets: list[Tensor] = []
        self._versions: list[int] = []

    def of(self, weights: Sequence[Tensor]) -> Tensor:
        """A place for these, which is filled by `refresh`; the parameters themselves where nothing has to be done."""
        first = weights[0]
        if len(weights) == 1 and first.dtype == self.dtype:
            return first.detach()
        if first.dtype == self.dtype != torch.float32:  # held narrow for want of room: no copies
            return stacked(weights)
        rows = [len(weight) for weight in weights]
        whole = first.new_empty(sum(rows), *first.shape[1:], dtype=self.dtype)
        self.into(torch.split(whole, rows), weights)
        return whole

    def into(self, targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        """Let `refresh` fill these from those."""
        self._sources += [source.detach() for source in sources]
        self._targets += targets

    @torch.no_grad()
    def refresh(self) -> None:
        versions = [source._version for source in self._sources]
        if versions != self._versions:
            if versions:
                torch._foreach_copy_(self._targets, self._sources)
            self._versions = versions


@dataclass(eq=False)
class LlamaForward:
    """Hidden states and logprobs of one model, with gradient; holds its parameters and not the model itself."""

    layers: Sequence[Layer]
    norm: NormWeight
    embedding: tuple[Tensor, Tensor]  # rounded, and the parameter
    head: tuple[Tensor, Tensor]
    rotary: Any
    rounding: Rounding
    is_checkpointed: bool = False  # keep only the stream between layers

    @property
    def dtype(self) -> torch.dtype:
        """What is computed in."""
        return self.rounding.dtype

    @property
    def takes_varlen(self) -> bool:
        """Whether the attention kernel can serve every layer."""
        if any(layer.window is not None for layer in self.layers):
            return False
        is_narrow = self.dtype in (torch.bfloat16, torch.float16)
        if not self.norm.weight.is_cuda:
            return self.dtype == torch.float32 and takes(self.layers[0].heads)
        return is_narrow and self.layers[0].heads.size in (16, 32, 64, 128)

    def without_adapters(self) -> LlamaForward:
        """The same over the same weights."""
        return replace(self, layers=[layer.without_adapters() for layer in self.layers])

    def hidden_states(self, tokens: Tensor, positions: Tensor, plan: AttentionPlan | Varlen) -> Tensor:
        """Packed tokens [U] -> last hidden states [U, hidden]."""
        self.rounding.refresh()
        residual: Tensor = _Embed.apply(tokens, *self.embedding)  # type: ignore[no-untyped-call]
        where = PassTokens(*self._angles(residual, positions), plan, self.is_checkpointed)
        delta: Tensor | None = None
        for layer in self.layers:
            residual, delta = layer(residual, delta, where)
        return _LastNorm.apply(residual, delta, self.norm.weight, self.norm)  # type: ignore[no-any-return, no-untyped-call]

    def logprobs(self, hidden: Tensor, tokens: Tensor, temperature: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
        """hidden [R, hidden] before each of tokens [R] -> logprobs and entropy [R]."""
        self.rounding.refresh()
        return token_logprobs(hidden, *self.head, tokens, temperature, chunk)

    @torch.no_grad()
    def _angles(self, residual: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine [U, D / 2]; both halves of a head turn alike."""
        cosine, sine = self.rotary(residual, positions.unsqueeze(0))  # [1, U, D]
        half = cosine.shape[-1] // 2
        return cosine[0, :, :half].contiguous(), sine[0, :, :half].contiguous()


class _Embed(torch.autograd.Function):
    """Rows of the rounded table, as the float32 stream begins."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, cast: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.count = len(weight)
        return cast.index_select(0, tokens).to(torch.promote_types(cast.dtype, torch.float32))

    @staticmethod
    def backward(ctx: Any, d_rows: Tensor) -> tuple[Tensor | None, ...]:
        (tokens,) = ctx.saved_tensors
        if not ctx.needs_input_grad[2]:
            return None, None, None
        return None, None, torch.ops.aten.embedding_dense_backward(d_rows, tokens, ctx.count, -1, False)


class _LastNorm(torch.autograd.Function):
    """After it the stream is not needed any more."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, delta: Tensor, weight: Tensor, norm: NormWeight) -> Tensor:
        state, normed, scale = norm(residual, delta)
        ctx.save_for_backward(state, weight, scale)
        return normed

    @staticmethod
    def backward(ctx: Any, d_normed: Tensor) -> tuple[Tensor | None, ...]:
        state, weight, scale = ctx.saved_tensors
        found = norm_backward(None, d_normed.contiguous(), state, None, weight, scale)
        return found.residual, found.delta, found.weight if ctx.needs_input_grad[2] else None, None


def llama_forward(model: Any, dtype: torch.dtype, says_why_not: bool) -> LlamaForward | None:
    """The quick forward for this model; None where its family is another, or, with a warning, where the proof fails."""
    name = type(model).__name__
    if not has_quick(model, dtype):
        if says_why_not:
            warnings.warn(
                f"{name} trains on the slow path: only plain {', '.join(_FAMILIES)} have a quick one", stacklevel=2
            )
        return None
    forward = _built(model, dtype)
    try:
        difference = _difference(forward, model)
    except (ImportError, RuntimeError) as error:
        warnings.warn(f"{name} trains on the slow path: its kernels do not run here ({error})", stacklevel=2)
        return None
    if not difference <= _TOLERANCE[_compared(model, dtype)]:
        warnings.warn(
            f"{name} trains on the slow path: the quick one differs by {difference:.3g} of the largest state, "
            f"at most {_TOLERANCE[_compared(model, dtype)]} may be rounding",
            stacklevel=2,
        )
        return None
    return forward


def has_quick(model: Any, dtype: torch.dtype) -> bool:
    """Whether there is a quick forward for a model of this shape; whether it is right is proved on its weights."""
    return type(model).__name__ in _FAMILIES and _is_plain(model, dtype)


def _is_plain(model: Any, dtype: torch.dtype) -> bool:
    """Whether nothing is done that this file does not do."""
    config, inner = model.config, model.base_model
    products = [(layer.mlp.gate_proj, layer.mlp.down_proj, layer.self_attn.q_proj) for layer in inner.layers]
    has_plain_layers = all(_is_linear(each, dtype) for layer in products for each in layer)
    has_plain_layers &= all(down.bias is None for _, down, _ in products)
    has_plain_logits = not any(getattr(config, name, None) is not None for name in _AFTER_LOGITS)
    return config.hidden_act == "silu" and has_plain_layers and has_plain_logits and not config.attention_dropout


def _is_linear(module: Any, dtype: torch.dtype) -> bool:
    """A weight beside which an adapter stands is read as it is, so it has to be in what is computed in."""
    if not is_adapted(module):
        return type(module) is torch.nn.Linear
    return type(module.base_layer) in (torch.nn.Linear, FourBitLinear) and module.dtype == dtype


def _built(model: Any, dtype: torch.dtype) -> LlamaForward:
    inner, output = model.base_model, model.get_output_embeddings().weight
    rounding = Rounding(dtype)
    layers = [_layer(index, module, rounding) for index, module in enumerate(inner.layers)]
    table = inner.embed_tokens.weight
    embedding = (rounding.of([table]), table)
    head = embedding if output is table else (rounding.of([output]), output)
    return LlamaForward(layers, _norm(inner.norm, dtype), embedding, head, inner.rotary_emb, rounding)


def _layer(index: int, module: Any, rounding: Rounding) -> Layer:
    attention, feed_forward, dtype = module.self_attn, module.mlp, rounding.dtype
    size = attention.head_dim
    has_norms = hasattr(attention, "q_norm")
    return Layer(
        index=index,
        before_attention=_norm(module.input_layernorm, dtype),
        fused=_projection(rounding, attention.q_proj, attention.k_proj, attention.v_proj),
        head_norms=(_norm(attention.q_norm, dtype), _norm(attention.k_norm, dtype)) if has_norms else None,
        output=_projection(rounding, attention.o_proj),
        before_feed_forward=_norm(module.post_attention_layernorm, dtype),
        gate_up=_projection(rounding, feed_forward.gate_proj, feed_forward.up_proj),
        down=_projection(rounding, feed_forward.down_proj),
        heads=Heads(attention.q_proj.out_features // size, attention.k_proj.out_features // size, size),
        scale=attention.scaling,
        window=getattr(attention, "sliding_window", None),
    )


def _projection(rounding: Rounding, *modules: Any) -> Projection:
    if is_adapted(modules[0]):
        adapter, learned = room_for(modules, rounding.dtype, rounding.scratch), masters(modules)
        rounding.into(adapter.parts, learned)
        return AdaptedProjection(*fuse(*modules), adapter, learned)
    weights = [module.weight for module in modules]
    biases = [module.bias for module in modules if module.bias is not None]
    return Projection(weights, biases, rounding.of(weights), rounding.of(biases) if biases else None)


def _norm(module: Any, dtype: torch.dtype) -> NormWeight:
    return NormWeight(module.weight, module.variance_epsilon, dtype)


@torch.no_grad()
def _difference(forward: LlamaForward, model: Any) -> float:
    """Largest difference from the model's own states, over the largest state, on two sequences that share a prefix."""
    device = forward.norm.weight.device
    tokens = probe(model, 9)
    positions = torch.tensor([0, 1, 2, 3, 4, 2, 3, 4, 5], device=device)
    sizes, places = np.array([5, 6]), np.array([0, 1, 2, 3, 4, 0, 1, 5, 6, 7, 8])
    packed = Packed(sizes, device, places)
    plan: AttentionPlan | Varlen = Varlen(sizes, places, device) if forward.takes_varlen else packed
    ours = forward.hidden_states(tokens, positions, plan).float()
    compared = _compared(model, forward.dtype)
    with torch.autocast(device.type, compared, enabled=compared != torch.float32):
        theirs = hidden_states(model, tokens, positions, packed).float()
    return float((ours - theirs).abs().max() / theirs.abs().max())


def _compared(model: Any, dtype: torch.dtype) -> torch.dtype:
    """What the model's own modules compute in: no wider than its weights are."""
    return dtype if dtype != torch.float32 else model.get_input_embeddings().weight.dtype
