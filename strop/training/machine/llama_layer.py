"""One decoder block (`strop.models.layers.block`) as a single autograd function with a handwritten backward pass.

Kept for the backward pass are the residual stream, the heads, the outputs of attention, and gate and up: everything
else is recomputed by the kernels that need it. With `is_checkpointed` only the residual stream is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from strop.kernels import head_norms
from strop.kernels.attention import Angles, Heads, Varlen, attend, attend_back, rotate, turned
from strop.kernels.head_norms import HeadNorms
from strop.models.layers.attention import AttentionPlan, Scoring
from strop.training.machine.feed_forward import DenseFeed, RoutedFeed
from strop.training.machine.norms import NoNorm, NormWeight
from strop.training.machine.projection import Projection


class Kept(NamedTuple):
    """Tensors that a layer keeps for the backward pass."""

    stream: Tensor  # [U, hidden] before attention
    scale: Tensor  # [U]
    fused: Tensor  # [U, (H + 2K) D]
    attended: Tensor  # [U, H D]
    level: Tensor  # [H, U]; empty where a plan attends
    added: Tensor  # [U, hidden], what attention added to the stream, or what the norm behind it made that of
    second_scale: Tensor  # [U]
    opened: Tensor  # [U, 2F], gate and up; of experts the state [U, hidden]
    chosen: Tensor  # [U, k], experts; empty where there are none


@dataclass(frozen=True, eq=False)
class PassTokens:
    """Tokens of one pass: their rotary angles [U, D / 2] by the name of a rotation, and the keys that each of them
    sees.
    """

    angles: Mapping[str, Angles]
    plan: AttentionPlan | Varlen
    routes: Tensor | None = None  # [U, R], experts that were taken, layer by layer; -1: not known
    is_checkpointed: bool = False  # layers are computed again going backward


@dataclass(frozen=True, eq=False)
class Layer:
    """Decoder block; its output is returned without the residual stream, to which the next norm adds it."""

    index: int
    before_attention: NormWeight | NoNorm
    fused: Projection
    head_norms: tuple[NormWeight, NormWeight] | None  # of queries and keys
    output: Projection
    after_attention: NormWeight | NoNorm
    before_feed_forward: NormWeight | NoNorm
    feed: DenseFeed | RoutedFeed
    after_feed_forward: NormWeight | NoNorm
    heads: Heads
    scale: float
    window: int | None
    cap: float | None
    angles: str

    def __call__(self, residual: Tensor, delta: Tensor | None, where: PassTokens) -> tuple[Tensor, Tensor]:
        """residual [U, hidden] (float32) and what the layer before adds to it -> the same of this layer."""
        return _Run.apply(self, where, residual, delta, *self.parameters)  # type: ignore[no-any-return, no-untyped-call]

    def without_adapters(self) -> Layer:
        return replace(self, fused=self.fused.alone(), output=self.output.alone(), feed=self.feed.alone())

    @property
    def parameters(self) -> list[Tensor]:
        of_heads = [each.weight for each in self.head_norms or ()]
        return [
            *self.before_attention.parameters, *self.fused.parameters, *of_heads, *self.output.parameters,
            *self.after_attention.parameters, *self.before_feed_forward.parameters, *self.feed.parameters,
            *self.after_feed_forward.parameters,
        ]  # fmt: skip

    def forward(self, residual: Tensor, delta: Tensor | None, where: PassTokens) -> tuple[Tensor, Tensor, Kept]:
        after, kept = self.up_to_gate(residual, delta, where)
        return after, self.after_feed_forward.behind(self.feed.closed(kept.opened, kept.chosen)), kept

    def up_to_gate(self, residual: Tensor, delta: Tensor | None, where: PassTokens) -> tuple[Tensor, Kept]:
        """The stream after attention, and all that going backward needs: not what the layer adds last."""
        stream, normed, scale = self.before_attention(residual, delta)
        fused = self.fused(normed)
        if isinstance(where.plan, Varlen):
            by_place = self._turned(fused, where)
            attended, level = attend(by_place, self.heads, where.plan, self.scale, *self._sight(where))
        else:
            attended, level = self.by_plan(fused, where), fused.new_empty(0)
        added = self.output(attended)
        after, normed, second_scale = self.before_feed_forward(stream, self.after_attention.behind(added))
        opened = self.feed.opened(normed, where.routes)
        return after, Kept(stream, scale, fused, attended, level, added, second_scale, *opened)

    def backward(self, d_after: Tensor | None, d_delta: Tensor, kept: Kept, where: PassTokens) -> list[Tensor]:
        """Gradients of the residual, of what was added to it, and of every parameter."""
        d_added, of_last = self._last_back(d_delta, kept)
        d_normed, rest = self.feed.back(d_added, kept.opened, kept.chosen)
        added = self.after_attention.behind(kept.added)
        second, of_second = self.before_feed_forward.back(d_after, d_normed, kept.stream, added, kept.second_scale)
        of_feed = self.feed.gradients(rest, second.normed)
        del rest, added
        d_added, of_middle = self.after_attention.behind_back(second.delta, kept.added)
        d_attended, middle = self.output.back(d_added)
        of_output = self.output.gradients(d_added, kept.attended, middle)
        d_fused, of_heads = self._attention_back(d_attended, kept, where)
        d_normed, middle = self.fused.back(d_fused)
        first, of_first = self.before_attention.back(second.residual, d_normed, kept.stream, None, kept.scale)
        of_fused = self.fused.gradients(d_fused, first.normed, middle)
        return [
            first.residual, first.delta, *of_first, *of_fused, *of_heads, *of_output, *of_middle, *of_second, *of_feed,
            *of_last,
        ]  # fmt: skip

    def _last_back(self, d_delta: Tensor, kept: Kept) -> tuple[Tensor, list[Tensor]]:
        """Through the norm behind the feed-forward, whose input is made again."""
        if isinstance(self.after_feed_forward, NoNorm):
            return d_delta, []
        return self.after_feed_forward.behind_back(d_delta, self.feed.closed(kept.opened, kept.chosen))

    def _turned(self, fused: Tensor, where: PassTokens) -> Tensor:
        """Heads by their positions: in place, or, where norms must see them again, as a copy."""
        if self.head_norms is None:
            rotate(fused, *where.angles[self.angles], self.heads)
            return fused
        return head_norms.forward(fused, self.heads, self._norms_of_heads, where.angles[self.angles])

    @property
    def _norms_of_heads(self) -> HeadNorms:
        assert self.head_norms is not None
        query, key = self.head_norms
        return HeadNorms(query.weight, key.weight, query.epsilon, query.offset)

    def by_plan(self, fused: Tensor, where: PassTokens) -> Tensor:
        """[U, (H + 2K) D] -> [U, H D] by plain operations, which autograd knows."""
        assert not isinstance(where.plan, Varlen)
        query, key, value = self.heads.split(fused)
        if self.head_norms is not None:
            query, key = self.head_norms[0].of_heads(query), self.head_norms[1].of_heads(key)
        query, key = (turned(each, *where.angles[self.angles]).to(fused.dtype) for each in (query, key))
        scoring = Scoring(self.scale, self.window, self.cap)
        seen = where.plan.attend(self.index, query, key, value, scoring)
        return seen.reshape(len(fused), -1)

    def _sight(self, where: PassTokens) -> tuple[int | None, float | None]:
        """Window and cap; a window that no sequence of this pass leaves is none."""
        longest = where.plan.longest if isinstance(where.plan, Varlen) else 0
        return self.window if self.window is not None and self.window < longest else None, self.cap

    def _attention_back(self, d_attended: Tensor, kept: Kept, where: PassTokens) -> tuple[Tensor, list[Tensor]]:
        """Gradients of the fused projection's output, and of the norms of heads."""
        if isinstance(where.plan, Varlen):
            return self._flash_back(d_attended, kept, where)
        weights = [each.weight for each in self.head_norms or ()]
        with torch.enable_grad():
            fused = kept.fused.detach().requires_grad_()
            attended = self.by_plan(fused, where)
        learned = [weight for weight in weights if weight.requires_grad]
        d_fused, *of_heads = torch.autograd.grad(attended, [fused, *learned], d_attended)
        return d_fused, of_heads or weights  # of weights that do not learn nobody asks for a gradient

    def _flash_back(self, d_attended: Tensor, kept: Kept, where: PassTokens) -> tuple[Tensor, list[Tensor]]:
        """The same by kernels."""
        assert isinstance(where.plan, Varlen)
        angles, sight = where.angles[self.angles], self._sight(where)
        rest = (kept.attended, kept.level, self.heads, where.plan, self.scale)
        if self.head_norms is None:
            return attend_back(d_attended, kept.fused, *rest, angles, *sight), []
        d_turned = attend_back(d_attended, self._turned(kept.fused, where), *rest, None, *sight)
        found = head_norms.backward(d_turned, kept.fused, self.heads, self._norms_of_heads, angles)
        return found[0], list(found[1:])


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
