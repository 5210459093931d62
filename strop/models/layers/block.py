"""Decoder blocks: one description for all model families with a fast path, read from the modules of transformers.

A block adds the outputs of attention and feed-forward to the residual stream. Families differ in the place of norms
(before a part, after it, or both), in fused projections, and in attention scores and masks. Engines and trainers
compute from this description, and compare the result with the model's own forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels import experts
from strop.kernels.attention import Angles, Heads
from strop.models.loading.check_folder import read_config

FAMILIES = (
    "LlamaForCausalLM", "MistralForCausalLM", "Phi3ForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
    "Olmo2ForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "MixtralForCausalLM", "Qwen3MoeForCausalLM",
)  # fmt: skip
_GEMMA = ("gemma2", "gemma3_text")  # norms' weights are stored less 1, and embeddings scaled
_ACTIVATIONS = {"silu": False, "gelu_pytorch_tanh": True}
_ONE_WINDOW = ("mistral", "mixtral", "phi3")  # for all layers; others say it in each
_AFTER_LOGITS = ("logit_scale", "logits_scaling")  # what some families multiply logits by


@dataclass(frozen=True, eq=False)
class Norm:
    """RMSNorm over the last dimension; the weight is added to `offset`."""

    weight: Tensor
    epsilon: float
    offset: float = 0.0

    def __call__(self, state: Tensor) -> Tensor:
        weight = self.weight
        if self.offset == 0:
            return F.rms_norm(state, weight.shape, weight, self.epsilon)
        return F.rms_norm(state.float(), weight.shape, weight.float() + self.offset, self.epsilon).to(state.dtype)


@dataclass(frozen=True, eq=False)
class Attention:
    """Attention layer; linear layers that read the same input are fused, norms are per head or over all heads
    together.
    """

    query_key_value: Sequence[Any]  # one module, or three
    output: Any
    head_norms: tuple[Norm, Norm] | None  # of queries and keys
    heads: Heads
    scale: float
    window: int | None  # tokens that are seen, the last one included
    cap: float | None  # of scores
    angles: str  # which of the model's rotations, where it has several


@dataclass(frozen=True, eq=False)
class FeedForward:
    """Gated feed-forward layer: down(activation(gate) * up)."""

    gate_up: Sequence[Any]  # one module, or two
    down: Any
    is_gelu: bool


@dataclass(frozen=True, eq=False)
class RoutedExperts:
    """Mixture of experts: each token goes through the `count` experts that the router scores highest."""

    router: Tensor  # [E, hidden]
    gate_up: Tensor  # [E, 2F, hidden]
    down: Tensor  # [E, hidden, F]
    count: int
    is_normalised: bool  # what the chosen ones weigh is 1 in all
    is_gelu: bool

    def route(self, state: Tensor, taken: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """RoutedExperts of each token [T, k], and what they weigh."""
        return experts.route(state, self.router, self.count, self.is_normalised, taken)

    def mixed(self, state: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        """[T, hidden] -> [T, hidden]."""
        return experts.mixed(state, chosen, weights, self.gate_up, self.down, self.is_gelu)


@dataclass(frozen=True, eq=False)
class DecoderBlock:
    """Decoder block; norms before and after each part are optional."""

    before_attention: Norm | None
    attention: Attention
    after_attention: Norm | None
    before_feed_forward: Norm | None
    feed_forward: FeedForward | RoutedExperts
    after_feed_forward: Norm | None

    @property
    def products(self) -> tuple[Sequence[Any], ...]:
        """Linear layers that read the same input: queries, keys and values; output; gate and up; down.

        Experts are none.
        """
        attention, feed = self.attention, self.feed_forward
        dense = (feed.gate_up, (feed.down,)) if isinstance(feed, FeedForward) else ()
        return attention.query_key_value, (attention.output,), *dense


@dataclass(frozen=True, eq=False)
class WholeDecoder:
    """Decoder: embedding, blocks, final norm and output layer."""

    blocks: Sequence[DecoderBlock]
    embedding: Tensor  # [V, hidden]
    embedding_scale: float
    padding: int  # the token whose embedding does not learn; -1: none
    norm: Norm
    head: Tensor  # [V, hidden]
    cap: float | None  # of logits
    rotary: Any

    @property
    def num_routes(self) -> int:
        """Numbers that say which experts a token took, over all layers."""
        return sum(block.feed_forward.count for block in self.blocks if isinstance(block.feed_forward, RoutedExperts))

    @torch.no_grad()
    def angles(self, like: Tensor, positions: Tensor) -> dict[str, Angles]:
        """Cosine and sine [T, D / 2] of positions [T] by the name of a rotation; both halves of a head turn alike."""
        found = {}
        for name in dict.fromkeys(block.attention.angles for block in self.blocks):
            given = (like, positions.unsqueeze(0), name) if name else (like, positions.unsqueeze(0))
            cosine, sine = self.rotary(*given)  # [1, T, D]
            half = cosine.shape[-1] // 2
            found[name] = cosine[0, :, :half].contiguous(), sine[0, :, :half].contiguous()
        return found

    @property
    def scale(self) -> float:
        """What embeddings are multiplied by, rounded to the type they have."""
        return float(torch.tensor(self.embedding_scale, dtype=self.embedding.dtype))


def why_undescribed(model: Any) -> str:
    """What of this model the description cannot tell; empty where it tells all."""
    return _why(type(model).__name__, model.config)


def why_slow(folder: Path) -> str:
    """The same of a model in a folder, which is not loaded."""
    config = read_config(folder)
    return _why(next(iter(getattr(config, "architectures", None) or ()), config.model_type), config)


@contextmanager
def watched_gates(model: Any, hook: Callable[..., Any]) -> Iterator[None]:
    """Let a forward hook see, or replace, what gates say: logits, weights and numbers of experts of each token.

    Whoever is compared with another pass takes the same experts: which of two near ones is the larger may be rounding.
    """
    layers = model.base_model.layers if type(model).__name__ in FAMILIES else ()
    hooks = [layer.mlp.gate.register_forward_hook(hook) for layer in layers if hasattr(layer.mlp, "experts")]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()


def _why(name: str, config: Any) -> str:
    if name not in FAMILIES:
        return f"{name} is none of {', '.join(FAMILIES)}"
    if (activation := _activation(config)) not in _ACTIVATIONS:
        return f"its activation is {activation}, none of {', '.join(_ACTIVATIONS)}"
    if getattr(config, "use_bidirectional_attention", False):
        return "its attention looks ahead"
    for name in _AFTER_LOGITS:
        if getattr(config, name, None) is not None:
            return f"its logits are scaled ({name})"
    for rope in _rotations(config).values():
        if float(rope.get("partial_rotary_factor", 1.0)) != 1.0:
            return f"only {rope['partial_rotary_factor']} of each head turns with the position"
    if getattr(config, "attention_dropout", 0.0):
        return f"it has dropout ({config.attention_dropout})"
    return ""


def described(model: Any) -> WholeDecoder:
    """Of a model that `why_undescribed` has nothing against."""
    inner, config = model.base_model, model.config
    embedding = inner.embed_tokens
    return WholeDecoder(
        blocks=[_block(module, config) for module in inner.layers],
        embedding=embedding.weight,
        embedding_scale=config.hidden_size**0.5 if config.model_type in _GEMMA else 1.0,
        padding=-1 if embedding.padding_idx is None else int(embedding.padding_idx),
        norm=_norm(inner.norm, config),
        head=model.get_output_embeddings().weight,
        cap=getattr(config, "final_logit_softcapping", None),
        rotary=inner.rotary_emb,
    )


def _block(module: Any, config: Any) -> DecoderBlock:
    """Where there is a norm behind the feed-forward, the one called after attention stands behind that too."""
    first, second = getattr(module, "input_layernorm", None), module.post_attention_layernorm
    last = getattr(module, "post_feedforward_layernorm", None)
    third = getattr(module, "pre_feedforward_layernorm", None) if last is not None else second
    return DecoderBlock(
        before_attention=_norm_or_none(first, config),
        attention=_attention(module.self_attn, config),
        after_attention=_norm_or_none(None if last is None else second, config),
        before_feed_forward=_norm_or_none(third, config),
        feed_forward=_feed_forward(module.mlp, config),
        after_feed_forward=_norm_or_none(last, config),
    )


def _attention(module: Any, config: Any) -> Attention:
    is_fused, has_norms = hasattr(module, "qkv_proj"), hasattr(module, "q_norm")
    of_all = config.sliding_window if config.model_type in _ONE_WINDOW else None
    return Attention(
        query_key_value=(module.qkv_proj,) if is_fused else (module.q_proj, module.k_proj, module.v_proj),
        output=module.o_proj,
        head_norms=(_norm(module.q_norm, config), _norm(module.k_norm, config)) if has_norms else None,
        heads=Heads(config.num_attention_heads, config.num_key_value_heads, module.head_dim),
        scale=module.scaling,
        window=getattr(module, "sliding_window", of_all),
        cap=module.attn_logit_softcapping if config.model_type == "gemma2" else None,
        angles="" if "" in _rotations(config) else module.layer_type,
    )


def _feed_forward(module: Any, config: Any) -> FeedForward | RoutedExperts:
    is_gelu = _ACTIVATIONS[_activation(config)]
    if hasattr(module, "experts"):
        inner, count = module.experts, config.num_experts_per_tok
        is_normalised = getattr(config, "norm_topk_prob", True)
        return RoutedExperts(module.gate.weight, inner.gate_up_proj, inner.down_proj, count, is_normalised, is_gelu)
    is_fused = hasattr(module, "gate_up_proj")  # in this order
    gate_up = (module.gate_up_proj,) if is_fused else (module.gate_proj, module.up_proj)
    return FeedForward(gate_up, module.down_proj, is_gelu)


def _activation(config: Any) -> str:
    return str(getattr(config, "hidden_activation", None) or getattr(config, "hidden_act", None))


def _rotations(config: Any) -> dict[str, dict[str, Any]]:
    """How positions turn heads, by kind of layer where those differ."""
    found = getattr(config, "rope_parameters", None) or {}
    by_kind = {kind: rope for kind, rope in found.items() if isinstance(rope, dict)}
    return by_kind or {"": found}


def _norm(module: Any, config: Any) -> Norm:
    if config.model_type in _GEMMA:
        return Norm(module.weight, module.eps, offset=1.0)
    return Norm(module.weight, module.variance_epsilon)


def _norm_or_none(module: Any, config: Any) -> Norm | None:
    return None if module is None else _norm(module, config)
