"""One decoder layer of the Llama family as a single differentiable step, written out both ways.

For the way back it keeps the stream before it, its heads, what attention gave, what that added to the stream, and gate
and up: everything else is made again within the kernels that need it. With `is_checkpointed` only the stream is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels import norm, swiglu
from strop.kernels.adapted import Adapter, adapted, adapter_pulls, state_pull
from strop.kernels.attention import Heads, Varlen, attend, attend_back, rotate, turned
from strop.kernels.linear import weight_gradient
from strop.kernels.nf4 import Packed4
from strop.models.attention import AttentionPlan


class Projection:
    """Linear layers of one input as one; `cast` [O, I] are their weights, in what is computed in."""

    def __init__(
        self,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        cast: Tensor,
        bias: Tensor | None,
        packed: Packed4 | None = None,
    ) -> None:
        self.weights, self.biases = list(weights), list(biases)
        self._cast, self.bias, self._packed = cast, bias, packed

    @property
    def cast(self) -> Tensor:
        return self._cast if self._packed is None else self._packed.read()

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def __call__(self, state: Tensor) -> Tensor:
        return torch.mm(state, self.cast.t()) if self.bias is None else torch.addmm(self.bias, state, self.cast.t())

    def alone(self) -> Projection:
        """Without an adapter."""
        return Projection((), (), self._cast, self.bias, self._packed)

    def back(self, d_output: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient of the state, and what `gradients` asks for."""
        return torch.mm(d_output, self.cast), d_output

    def gradients(self, d_output: Tensor, state: Tensor, middle: Tensor) -> list[Tensor]:
        """Of its parameters, summed in their own type."""
        dtype, rows = self.weights[0].dtype, [len(weight) for weight in self.weights]
        found = list(torch.split(weight_gradient(d_output, state, dtype), rows))
        if self.biases:
            found += torch.split(d_output.sum(0, dtype=self.biases[0].dtype), rows)
        return found


class AdaptedProjection(Projection):
    """The same with an adapter beside it, which alone learns; `masters` are A and B of each layer, in float32."""

    def __init__(self, cast: Tensor, bias: Tensor | None, adapter: Adapter, masters: Sequence[Tensor]) -> None:
        super().__init__((), (), cast, bias, adapter.packed)
        self.adapter, self.masters = adapter, list(masters)

    @property
    def parameters(self) -> list[Tensor]:
        return self.masters

    def __call__(self, state: Tensor) -> Tensor:
        return adapted(state, self.cast, self.bias, self.adapter)

    def back(self, d_output: Tensor) -> tuple[Tensor, Tensor]:
        return state_pull(d_output, self.cast, self.adapter)

    def gradients(self, d_output: Tensor, state: Tensor, middle: Tensor) -> list[Tensor]:
        return adapter_pulls(d_output, middle, state, self.adapter, self.masters[0].dtype)


@dataclass(frozen=True, eq=False)
class NormWeight:
    """A weight of RMSNorm."""

    weight: Tensor
    epsilon: float
    dtype: torch.dtype

    def __call__(self, residual: Tensor, delta: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        return norm.forward(residual, delta, self.weight, self.epsilon, self.dtype)

    def of_heads(self, heads: Tensor) -> Tensor:
        """[T, H, D], rounded before the weight as transformers does; the result is not."""
        wide = torch.promote_types(heads.dtype, torch.float32)
        normal = F.rms_norm(heads.to(wide), self.weight.shape, None, self.epsilon).to(self.dtype)
        return normal.to(wide) * self.weight.to(self.dtype).to(wide)


class Kept(NamedTuple):
    """What a layer keeps."""

    stream: Tensor  # [U, hidden] before attention
    scale: Tensor  # [U]
    fused: Tensor  # [U, (H + 2K) D]
    attended: Tensor  # [U, H D]
    level: Tensor  # [H, U]; empty where a plan attends
    added: Tensor  # [U, hidden], what attention added to the stream
    second_scale: Tensor  # [U]
    gate_up: Tensor  # [U, 2F]


@dataclass(frozen=True, eq=False)
class PassTokens:
    """The tokens of one pass: their angles [U, D / 2], and what each of them sees."""

    cosine: Tensor
    sine: Tensor
    plan: AttentionPlan | Varlen
    is_checkpointed: bool = False  # layers are computed again going backward


@dataclass(frozen=True, eq=False)
class Layer:
    """What it adds to the stream is handed on, to be added by the next norm."""

    index: int
    before_attention: NormWeight
    fused: Projection
    head_norms: tuple[NormWeight, NormWeight] | None  # of queries and keys
    output: Projection
    before_feed_forward: NormWeight
    gate_up: Projection
    down: Projection
    heads: Heads
    scale: float
    window: int | None

    def __call__(self, residual: Tensor, delta: Tensor | None, where: PassTokens) -> tuple[Tensor, Tensor]:
        """residual [U, hidden] (float32) and what the layer before adds to it -> the same of this layer."""
        return _Run.apply(self, where, residual, delta, *self.parameters)  # type: ignore[no-any-return, no-untyped-call]

    def without_adapters(self) -> Layer:
        fused, output, gate_up, down = (each.alone() for each in (self.fused, self.output, self.gate_up, self.down))
        return replace(self, fused=fused, output=output, gate_up=gate_up, down=down)

    @property
    def parameters(self) -> list[Tensor]:
        of_heads = [each.weight for each in self.head_norms or ()]
        return [
            self.before_attention.weight, *self.fused.parameters, *of_heads, *self.output.parameters,
            self.before_feed_forward.weight, *self.gate_up.parameters, *self.down.parameters,
        ]  # fmt: skip

    def forward(self, residual: Tensor, delta: Tensor | None, where: PassTokens) -> tuple[Tensor, Tensor, Kept]:
        after, kept = self.up_to_gate(residual, delta, where)
        return after, self.down(swiglu.forward(kept.gate_up)), kept

    def up_to_gate(self, residual: Tensor, delta: Tensor | None, where: PassTokens) -> tuple[Tensor, Kept]:
        """The stream after attention, and all that going backward needs: not what the layer adds last."""
        stream, normed, scale = self.before_attention(residual, delta)
        fused = self.fused(normed)
        if self.is_flash(where):
            rotate(fused, where.cosine, where.sine, self.heads)
            attended, level = attend(fused, self.heads, where.plan, self.scale)  # type: ignore[arg-type]
        else:
            attended, level = self.by_plan(fused, where), fused.new_empty(0)
        added = self.output(attended)
        after, normed, second_scale = self.before_feed_forward(stream, added)
        gate_up = self.gate_up(normed)
        return after, Kept(stream, scale, fused, attended, level, added, second_scale, gate_up)

    def backward(self, d_after: Tensor | None, d_delta: Tensor, kept: Kept, where: PassTokens) -> list[Tensor]:
        """Gradients of the residual, of what was added to it, and of every parameter."""
        d_product, middle = self.down.back(d_delta)
        d_gate_up, product = swiglu.backward(kept.gate_up, d_product)
        of_down = self.down.gradients(d_delta, product, middle)
        del product, d_product
        d_normed, middle = self.gate_up.back(d_gate_up)
        second = norm.backward(
            d_after, d_normed, kept.stream, kept.added, self.before_feed_forward.weight, kept.second_scale
        )
        of_gate_up = self.gate_up.gradients(d_gate_up, second.normed, middle)
        del d_gate_up
        d_attended, middle = self.output.back(second.delta)
        of_output = self.output.gradients(second.delta, kept.attended, middle)
        d_fused, of_heads = self._attention_back(d_attended, kept, where)
        d_normed, middle = self.fused.back(d_fused)
        first = norm.backward(second.residual, d_normed, kept.stream, None, self.before_attention.weight, kept.scale)
        of_fused = self.fused.gradients(d_fused, first.normed, middle)
        return [
            first.residual, first.delta, first.weight, *of_fused, *of_heads, *of_output, second.weight, *of_gate_up,
            *of_down,
        ]  # fmt: skip

    def is_flash(self, where: PassTokens) -> bool:
        return isinstance(where.plan, Varlen) and self.head_norms is None

    def by_plan(self, fused: Tensor, where: PassTokens) -> Tensor:
        """[U, (H + 2K) D] -> [U, H D] by plain operations, which autograd knows."""
        query, key, value = self.heads.split(fused)
        if self.head_norms is not None:
            query, key = self.head_norms[0].of_heads(query), self.head_norms[1].of_heads(key)
        query, key = (turned(each, where.cosine, where.sine).to(fused.dtype) for each in (query, key))
        if isinstance(where.plan, Varlen):
            whole = torch.cat((query, key, value), 1).flatten(1)
            return _Attend.apply(whole, self.heads, where.plan, self.scale)  # type: ignore[no-any-return, no-untyped-call]
        seen = where.plan.attend(self.index, query, key, value, self.scale, self.window, None)
        return seen.reshape(len(fused), -1)

    def _attention_back(self, d_attended: Tensor, kept: Kept, where: PassTokens) -> tuple[Tensor, list[Tensor]]:
        """Gradients of the fused projection's output, and of the norms of heads."""
        if self.is_flash(where):
            rest = (kept.level, self.heads, where.plan, self.scale, (where.cosine, where.sine))
            return attend_back(d_attended, kept.fused, kept.attended, *rest), []  # type: ignore[arg-type]
        weights = [each.weight for each in self.head_norms or ()]
        with torch.enable_grad():
            fused = kept.fused.detach().requires_grad_()
            attended = self.by_plan(fused, where)
        learned = [weight for weight in weights if weight.requires_grad]
        d_fused, *of_heads = torch.autograd.grad(attended, [fused, *learned], d_attended)
        return d_fused, of_heads or weights  # of weights that do not learn nobody asks for a gradient


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, layer: Layer, where: PassTokens, residual: Tensor, delta: Tensor | None, *_: Tensor
    ) -> tuple[Tensor, Tensor]:
        after, added, kept = layer.forward(residual, delta, where)
        ctx.layer, ctx.where, ctx.has_delta = layer, where, delta is not None
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*(kept[:1] if where.is_checkpointed else kept))
        return after, added

    @staticmethod
    def backward(ctx: Any, d_after: Tensor | None, d_delta: Tensor) -> tuple[Tensor | None, ...]:
        layer, where = ctx.layer, ctx.where
        saved = ctx.saved_tensors
        kept = layer.up_to_gate(saved[0], None, where)[1] if where.is_checkpointed else Kept(*saved)
        residual, delta, *rest = layer.backward(d_after, d_delta, kept, where)
        wanted = [each if is_wanted else None for each, is_wanted in zip(rest, ctx.needs_input_grad[4:], strict=True)]
        return None, None, residual, delta if ctx.has_delta else None, *wanted


class _Attend(torch.autograd.Function):
    """Attention alone, for heads that were turned by plain operations."""

    @staticmethod
    def forward(ctx: Any, fused: Tensor, heads: Heads, plan: Varlen, scale: float) -> Tensor:
        output, level = attend(fused, heads, plan, scale)
        ctx.save_for_backward(fused, output, level)
        ctx.rest = heads, plan, scale
        return output

    @staticmethod
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
        return attend_back(d_output.contiguous(), *ctx.saved_tensors, *ctx.rest), None, None, None
