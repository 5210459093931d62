"""Forward pass of a decoder (`strop.models.layers.block`) for training, over the Hugging Face model's parameters.

Weights and their gradients are float32; they are rounded once after a change, and projections that read the same input
are fused. Base weights of adapters are held in the compute dtype and read in place. Operations between two matrix
products are one kernel each, which rounds where an engine with weights of that dtype does, and only what is expensive
to recompute is kept for the backward pass. The residual stream is float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.kernels.attention import Varlen, takes
from strop.kernels.cpu.linear import Linear, compiled
from strop.kernels.linear import keep_sums_whole
from strop.kernels.logprobs import token_logprobs
from strop.models.layers.adapters import is_adapted, masters, room_for
from strop.models.layers.attention import AttentionPlan, Packed
from strop.models.layers.block import (
    FeedForward,
    Norm,
    RoutedExperts,
    WholeDecoder,
    described,
    watched_gates,
    why_undescribed,
)
from strop.models.layers.eight_bit_linear import EightBitLinear, eight_bit_weights, plain_matmuls
from strop.models.layers.four_bit_linear import FourBitLinear
from strop.models.layers.fused_linear import fuse
from strop.models.model import hidden_states, probe
from strop.training.machine.eight_bits import EightBitProjection
from strop.training.machine.feed_forward import DenseFeed, RoutedFeed
from strop.training.machine.llama_layer import Layer, PassTokens
from strop.training.machine.norms import NoNorm, NormWeight
from strop.training.machine.projection import AdaptedProjection, PanelProjection, Projection
from strop.training.machine.weight_copies import Rounding

_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1}
_SMALL = 64_000_000  # weights
_HEADS = (16, 32, 64, 128, 256)  # sizes that attention has kernels for on a GPU


@dataclass(eq=False)
class LlamaForward:
    """Hidden states and logprobs of one model, with gradient; holds its parameters and not the model itself."""

    blocks: WholeDecoder
    layers: Sequence[Layer]
    norm: NormWeight
    embedding: tuple[Tensor, Tensor]  # rounded, and the parameter
    head: tuple[Tensor, Tensor]
    rounding: Rounding
    is_checkpointed: bool = False  # keep only the stream between layers

    @property
    def dtype(self) -> torch.dtype:
        """What is computed in."""
        return self.rounding.dtype

    def takes_varlen(self, longest: int) -> bool:
        """Whether the attention kernel can serve every layer over sequences of at most so many tokens."""
        if self.norm.weight.is_cuda:
            return self.dtype in (torch.bfloat16, torch.float16) and self.layers[0].heads.size in _HEADS
        sees_all = all(each.window is None or each.window >= longest for each in self.layers)
        is_plain = sees_all and all(each.cap is None for each in self.layers)
        return is_plain and self.dtype == torch.float32 and takes(self.layers[0].heads)

    def without_adapters(self) -> LlamaForward:
        """The same over the same weights."""
        return replace(self, layers=[layer.without_adapters() for layer in self.layers])

    def hidden_states(
        self, tokens: Tensor, positions: Tensor, plan: AttentionPlan | Varlen, routes: Tensor | None = None
    ) -> Tensor:
        """Packed tokens [U] -> last hidden states [U, hidden], by the experts of `routes` [U, R] where it has some.

        Routes through a model of another shape are nothing to this one.
        """
        routes = routes if routes is not None and routes.shape[1] == self.blocks.num_routes else None
        self.rounding.refresh()
        residual: Tensor = _Embed.apply(tokens, *self.embedding, self._embedding_scale, self.blocks.padding)  # type: ignore[no-untyped-call]
        where = PassTokens(self.blocks.angles(residual, positions), plan, routes, self.is_checkpointed)
        delta: Tensor | None = None
        for layer in self.layers:
            residual, delta = layer(residual, delta, where)
        return _LastNorm.apply(residual, delta, self.norm.weight, self.norm)  # type: ignore[no-any-return, no-untyped-call]

    def logprobs(self, hidden: Tensor, tokens: Tensor, temperature: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
        """hidden [R, hidden] before each of tokens [R] -> logprobs and entropy [R]."""
        self.rounding.refresh()
        return token_logprobs(hidden, *self.head, tokens, temperature, chunk, self.blocks.cap)

    @property
    def _embedding_scale(self) -> float:
        """As an engine that holds it in what is computed in has it."""
        return float(torch.tensor(self.blocks.embedding_scale, dtype=self.dtype))


class _Embed(torch.autograd.Function):
    """Rows of the rounded table, as the float32 stream begins."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, cast: Tensor, weight: Tensor, scale: float, padding: int) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.count, ctx.scale, ctx.padding = len(weight), scale, padding
        rows = cast.index_select(0, tokens).to(torch.promote_types(cast.dtype, torch.float32))
        return rows if scale == 1 else rows * scale

    @staticmethod
    def backward(ctx: Any, d_rows: Tensor) -> tuple[Tensor | None, ...]:
        (tokens,) = ctx.saved_tensors
        if not ctx.needs_input_grad[2]:
            return None, None, None, None, None
        d_rows = d_rows if ctx.scale == 1 else d_rows * ctx.scale
        found = torch.ops.aten.embedding_dense_backward(d_rows, tokens, ctx.count, ctx.padding, False)
        return None, None, found, None, None


class _LastNorm(torch.autograd.Function):
    """After it the stream is not needed any more."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, delta: Tensor, weight: Tensor, norm: NormWeight) -> Tensor:
        state, normed, scale = norm(residual, delta)
        ctx.save_for_backward(state, scale)
        ctx.norm = norm
        return normed

    @staticmethod
    def backward(ctx: Any, d_normed: Tensor) -> tuple[Tensor | None, ...]:
        state, scale = ctx.saved_tensors
        found, _ = ctx.norm.back(None, d_normed.contiguous(), state, None, scale)
        return found.residual, found.delta, found.weight if ctx.needs_input_grad[2] else None, None


def llama_forward(model: Any, dtype: torch.dtype, says_why_not: bool) -> LlamaForward | None:
    """The fast forward for this model; None where its family is another, or, with a warning, where the proof fails."""
    name = type(model).__name__
    if reason := _why_slow(model, dtype):
        if says_why_not:
            warnings.warn(f"{name} trains on the slow path: {reason}", stacklevel=2)
        return None
    try:
        with plain_matmuls(model):  # by 8-bit numbers two right ways differ by 0.3 of the largest state
            forward = _built(model, dtype)
            difference = _difference(forward, model)
    except (ImportError, RuntimeError) as error:
        warnings.warn(f"{name} trains on the slow path: its kernels do not run here ({error})", stacklevel=2)
        return None
    most = _TOLERANCE[_compared(model, dtype)]
    if not difference <= most:
        warnings.warn(
            f"{name} trains on the slow path: the fast one differs by {difference:.3g} of the largest state, "
            f"at most {most} may be rounding",
            stacklevel=2,
        )
        return None
    return _built(model, dtype) if eight_bit_weights(model) else forward


def has_fast_path(model: Any, dtype: torch.dtype) -> bool:
    """Whether there is a fast forward for a model of this shape; whether it is right is proved on its weights."""
    return not _why_slow(model, dtype)


def _why_slow(model: Any, dtype: torch.dtype) -> str:
    """What stands against a fast forward; empty where there is one."""
    if reason := why_undescribed(model):
        return reason
    products = [product for block in described(model).blocks for product in block.products]
    strange = {type(module).__name__ for product in products for module in product if not _is_linear(module, dtype)}
    return f"linear layers that are {', '.join(sorted(strange))}" if strange else ""


def _is_linear(module: Any, dtype: torch.dtype) -> bool:
    """A weight beside which an adapter stands is read as it is, so it has to be in what is computed in."""
    if not is_adapted(module):
        return type(module) in (torch.nn.Linear, EightBitLinear)
    return type(module.base_layer) in (torch.nn.Linear, FourBitLinear) and module.dtype == dtype


def _built(model: Any, dtype: torch.dtype) -> LlamaForward:
    blocks, rounding = described(model), Rounding(dtype, _products(model, dtype))
    if blocks.embedding.is_cuda:
        keep_sums_whole()
    layers = [_layer(index, blocks, rounding) for index in range(len(blocks.blocks))]
    embedding = (rounding.of([blocks.embedding]), blocks.embedding)
    head = embedding if blocks.head is blocks.embedding else (rounding.of([blocks.head]), blocks.head)
    return LlamaForward(blocks, layers, _weight(blocks.norm, dtype), embedding, head, rounding)


def _products(model: Any, dtype: torch.dtype) -> Linear | None:
    """Those of our own, for models so small that weights may lie there twice more."""
    weights = list(model.parameters())
    is_plain = dtype == torch.float32 and all(each.dtype == dtype and not each.is_cuda for each in weights)
    return compiled() if is_plain and sum(each.numel() for each in weights) <= _SMALL else None


def _layer(index: int, blocks: WholeDecoder, rounding: Rounding) -> Layer:
    block, before = blocks.blocks[index], replace(blocks, blocks=blocks.blocks[:index])
    attention, dtype = block.attention, rounding.dtype
    norms = attention.head_norms
    return Layer(
        index=index,
        before_attention=_norm(block.before_attention, dtype),
        fused=_projection(rounding, *attention.query_key_value),
        head_norms=None if norms is None else (_weight(norms[0], dtype), _weight(norms[1], dtype)),
        output=_projection(rounding, attention.output),
        after_attention=_norm(block.after_attention, dtype),
        before_feed_forward=_norm(block.before_feed_forward, dtype),
        feed=_feed(block.feed_forward, before.num_routes, rounding),
        after_feed_forward=_norm(block.after_feed_forward, dtype),
        heads=attention.heads,
        scale=attention.scale,
        window=attention.window,
        cap=attention.cap,
        angles=attention.angles,
    )


def _feed(feed: FeedForward | RoutedExperts, first: int, rounding: Rounding) -> DenseFeed | RoutedFeed:
    if isinstance(feed, FeedForward):
        return DenseFeed(_projection(rounding, *feed.gate_up), _projection(rounding, feed.down), feed.is_gelu)
    router, gate_up, down = (rounding.of([each]) for each in (feed.router, feed.gate_up, feed.down))
    return RoutedFeed(feed, replace(feed, router=router, gate_up=gate_up, down=down), first)


def _projection(rounding: Rounding, *modules: Any) -> Projection:
    if is_adapted(modules[0]):
        adapter, learned = room_for(modules, rounding.dtype, rounding.scratch), masters(modules)
        rounding.into(adapter.parts, learned)
        return AdaptedProjection(*fuse(*modules), adapter, learned)
    weights = [module.weight for module in modules]
    biases = [module.bias for module in modules if module.bias is not None]
    bias = rounding.of(biases) if biases else None
    if isinstance(modules[0], EightBitLinear):
        return EightBitProjection(weights, biases, *rounding.in_eight_bits(weights), bias)
    cast = rounding.of(weights)
    if rounding.products is not None:
        return PanelProjection(weights, biases, cast, bias, rounding.in_panels(cast, weights), rounding.products)
    return Projection(weights, biases, cast, bias)


def _norm(norm: Norm | None, dtype: torch.dtype) -> NormWeight | NoNorm:
    return NoNorm(dtype) if norm is None else _weight(norm, dtype)


def _weight(norm: Norm, dtype: torch.dtype) -> NormWeight:
    return NormWeight(norm.weight, norm.epsilon, dtype, norm.offset)


@torch.no_grad()
def _difference(forward: LlamaForward, model: Any) -> float:
    """Largest difference from the model's own states, over the largest state, on two sequences that share a prefix."""
    device = forward.norm.weight.device
    tokens = probe(model, 9)
    positions = torch.tensor([0, 1, 2, 3, 4, 2, 3, 4, 5], device=device)
    sizes, places = np.array([5, 6]), np.array([0, 1, 2, 3, 4, 0, 1, 5, 6, 7, 8])
    packed = Packed(sizes, device, places)
    plan: AttentionPlan | Varlen = Varlen(sizes, places, device) if forward.takes_varlen(6) else packed
    compared = _compared(model, forward.dtype)
    taken: list[Tensor] = []
    watched = watched_gates(model, lambda _module, _given, told: taken.append(told[-1]))
    with torch.autocast(device.type, compared, enabled=compared != torch.float32), watched:
        theirs = hidden_states(model, tokens, positions, packed).float()
    ours = forward.hidden_states(tokens, positions, plan, torch.cat(taken, 1) if taken else None).float()
    return float((ours - theirs).abs().max() / theirs.abs().max())


def _compared(model: Any, dtype: torch.dtype) -> torch.dtype:
    """What the model's own modules compute in: no wider than its weights are."""
    return dtype if dtype != torch.float32 else model.get_input_embeddings().weight.dtype
