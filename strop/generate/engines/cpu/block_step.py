"""Hand-written decoder forward pass on the weights of the Hugging Face model, with fused projections.

For small models and few rows a step is mostly Python and module calls; this one has a third of them. Projections that
read the same input are fused by making the module's parameters views of one matrix, so nothing is stored twice and a
weight update reaches both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.generate.engines.cpu.kv_cache import Cached
from strop.kernels import swiglu
from strop.kernels.attention import Angles, Heads
from strop.models.layers.attention import AttentionPlan, Packed, Scoring
from strop.models.layers.block import DecoderBlock, Norm, RoutedExperts, described, watched_gates, why_undescribed
from strop.models.layers.fused_linear import Linear, fuse
from strop.models.model import hidden_states, probe

_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


@dataclass(frozen=True)
class BlockParts:
    """Modules and weights of a decoder block, cached because attribute access on modules is slow."""

    block: DecoderBlock
    query_key_value: Linear
    output: Linear
    gate_up: Linear | None = None  # None: there are experts
    down: Linear | None = None

    @classmethod
    def of(cls, block: DecoderBlock) -> BlockParts:
        return cls(block, *(fuse(*product) for product in block.products))

    def attend(self, index: int, state: Tensor, angles: Angles, plan: AttentionPlan) -> Tensor:
        """[T, hidden] -> [T, hidden]."""
        does = self.block.attention
        keys, size = does.heads.keys, does.heads.size
        heads = F.linear(state, *self.query_key_value).view(len(state), -1, size)  # [T, H + 2K, D]
        both, value = heads[:, :-keys], heads[:, -keys:]
        if does.head_norms is not None:
            both = _normed(both, does.heads, *does.head_norms)
        cosine, sine = angles
        both = torch.addcmul(both * cosine, both.roll(size // 2, -1), sine)  # rotary
        scoring = Scoring(does.scale, does.window, does.cap)
        seen = plan.attend(index, both[:, :-keys], both[:, -keys:], value, scoring)
        return F.linear(seen.reshape(len(state), -1), *self.output)

    def feed_forward(self, state: Tensor, routes: list[Tensor], taken: Sequence[Tensor] = ()) -> Tensor:
        """[T, hidden] -> [T, hidden]; experts are those `taken`, or chosen, and added to `routes`."""
        if self.gate_up is None or self.down is None:
            return routed(self.block, state, routes, taken)
        product = swiglu.reference_forward(F.linear(state, *self.gate_up), self.block.feed_forward.is_gelu)
        return F.linear(product, *self.down)


class BlockStep:
    """Forward pass with the signature of `strop.models.model.hidden_states`, without the model argument."""

    def __init__(self, model: Any) -> None:
        self._blocks = described(model)
        self._embedding, self._scale = self._blocks.embedding.detach(), self._blocks.scale
        self._layers = [BlockParts.of(block) for block in self._blocks.blocks]

    def __call__(self, tokens: Tensor, positions: Tensor, plan: AttentionPlan, taken: Sequence[Tensor] = ()) -> Tensor:
        """Packed tokens [T] -> last hidden states [T, hidden]; with experts `taken` [T, k] for each layer of them."""
        state = F.embedding(tokens, self._embedding)
        if self._scale != 1:
            state = state * self._scale
        angles = {name: _whole(*each) for name, each in self._blocks.angles(state, positions).items()}
        routes: list[Tensor] = []
        for index, layer in enumerate(self._layers):
            block = layer.block
            normed = _behind(block.before_attention, state)
            added = layer.attend(index, normed, angles[block.attention.angles], plan)
            state = state + _behind(block.after_attention, added)
            added = layer.feed_forward(_behind(block.before_feed_forward, state), routes, taken)
            state = state + _behind(block.after_feed_forward, added)
        if routes and isinstance(plan, Cached):
            plan.keep(noted(routes))
        return self._blocks.norm(state)


def routed(block: DecoderBlock, state: Tensor, routes: list[Tensor], taken: Sequence[Tensor] = ()) -> Tensor:
    """[T, hidden] through experts, which are added to `routes`."""
    feed = block.feed_forward
    assert isinstance(feed, RoutedExperts)
    chosen, weights = feed.route(state, taken[len(routes)] if taken else None)
    routes.append(chosen)
    return feed.mixed(state, chosen, weights)


def noted(routes: list[Tensor]) -> Tensor:
    """RoutedExperts of each layer [T, k] as they are kept, from 1 on: [T, R]."""
    return (torch.cat(routes, 1) + 1).to(torch.int16)


def _behind(norm: Norm | None, state: Tensor) -> Tensor:
    return state if norm is None else norm(state)


def _normed(both: Tensor, heads: Heads, query_norm: Norm, key_norm: Norm) -> Tensor:
    """Queries and keys [T, H + K, D], each head or all of a kind together."""
    parts = zip(torch.split(both, [heads.queries, heads.keys], 1), (query_norm, key_norm), strict=True)
    return torch.cat([norm(part.reshape(len(both), -1, len(norm.weight))).view_as(part) for part, norm in parts], 1)


def _whole(cosine: Tensor, sine: Tensor) -> Angles:
    """[T, D / 2] -> [T, 1, D]: rotating halves (a, b) to (-b, a) is rolling them, with the sign here."""
    return torch.cat((cosine, cosine), -1).unsqueeze(1), torch.cat((-sine, sine), -1).unsqueeze(1)


@torch.no_grad()
def block_step(model: Any) -> BlockStep | None:
    """The fast step for this model, or None where the family is another or the proof against its own forward fails."""
    if why_undescribed(model):
        return None
    step = BlockStep(model)
    weight = model.get_input_embeddings().weight
    positions = torch.arange(8, device=weight.device)
    tokens, plan = probe(model, 8), Packed([8], weight.device)
    taken: list[Tensor] = []
    with watched_gates(model, lambda _module, _given, told: taken.append(told[-1])):
        theirs = hidden_states(model, tokens, positions, plan).float()
    ours = step(tokens, positions, plan, taken).float()
    is_same = float((ours - theirs).abs().max()) <= _TOLERANCE[weight.dtype] * float(theirs.abs().max())
    return step if is_same else None
