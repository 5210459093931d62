"""Estimate of the GPU memory of training, made before the first step, so that a run does not fail at the fortieth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from strop.errors import ConfigurationError
from strop.models.layers.attention import recomputed
from strop.models.layers.eight_bit_linear import bytes_in_eight_bits, eight_bit_weights
from strop.models.optimizers.low_memory_adamw import Holding
from strop.models.torch_setup import gpu_memory

_GIB = 2**30
_BUSY = 8192  # tokens that keep a GPU busy
_PASSING = ("gradients", "activations", "logits")  # there while a step is made, and not between two
SPARE = 0.9  # of what is free; the rest is lost between blocks, or taken by libraries


@dataclass(frozen=True)
class Room:
    """Facts about the model known before it is loaded."""

    taken: int = 0  # bytes of the GPU that others will hold
    longest: int = 0  # tokens of a context; 0: micro-batches stay as they are
    others: int = 0  # models that do not learn and are asked beside it, each loaded when first asked
    keys: int = 0  # bytes that an engine holds between two steps, and gives back while one is made


def bytes_needed(
    model: Any, holding: Holding, chunk: int, is_fast: bool, is_checkpointed: bool, max_tokens: int
) -> dict[str, int]:
    """What comes on top of the weights, by purpose."""
    shape = _Shape(model.config)
    trained = sum(each.numel() for each in model.parameters() if each.requires_grad)
    eights = eight_bit_weights(model)
    rounded = {id(each) for each in eights}
    wide = sum(each.numel() for each in model.parameters() if each.dtype == torch.float32 and id(each) not in rounded)
    of_head = 4 * shape.hidden if model.get_output_embeddings().weight.requires_grad else 0
    kept, working = shape.per_token(is_fast)
    per_token = shape.stream * shape.layers + kept if is_checkpointed else kept * shape.layers
    found = {
        "gradients": holding.gradients * trained,
        "moments": holding.moments * trained,
        "bits cut off": holding.rest * trained,
        "rounded weights": holding.rounded * wide + bytes_in_eight_bits(eights),
        "activations": max_tokens * (per_token + working),
        "logits": shape.vocabulary * ((2 if is_fast else 16) * min(chunk, max_tokens) + of_head),
    }
    return {purpose: count for purpose, count in found.items() if count or purpose != "bits cut off"}


def peak(needed: Mapping[str, int], keys: int) -> int:
    """Bytes on top of the weights at their most: in a step, or between two, when there are keys of so many bytes."""
    held = sum(count for purpose, count in needed.items() if purpose not in _PASSING)
    return max(sum(needed.values()), held + keys)


def settle(
    free: int, needed: Callable[[bool, int], dict[str, int]], checkpointing: str, max_tokens: int, longest: int = 0
) -> tuple[bool, int]:
    """Whether layers are computed again going backward, and tokens of a micro-batch: the quickest way that fits.

    `needed(is_checkpointed, max_tokens)` are bytes by purpose; `checkpointing` is on, off or auto. A micro-batch may be
    halved as long as it holds the longest context, for the gradient is the same; what does not fit at all is refused.
    """
    for way in (choices := ways(checkpointing, max_tokens, longest)):
        if sum(needed(*way).values()) <= SPARE * free:
            return way
    raise ConfigurationError(_refusal(free, needed(*choices[-1]), checkpointing))


def ways(checkpointing: str, max_tokens: int, longest: int) -> list[tuple[bool, int]]:
    """Micro-batches that keep a GPU busy first with all of their layers kept; then with layers computed again."""
    found = []
    for is_checkpointed in {"on": (True,), "off": (False,), "auto": (False, True)}[checkpointing]:
        least = max(longest or max_tokens, 1 if is_checkpointed else _BUSY)
        halves = [max_tokens >> power for power in range(max_tokens.bit_length())]
        found += [(is_checkpointed, tokens) for tokens in halves if tokens == max_tokens or tokens >= least]
    return found


def _refusal(free: int, least: dict[str, int], checkpointing: str) -> str:
    parts = ", ".join(f"{name} {count / _GIB:.1f}" for name, count in least.items())
    rest = sum(count for name, count in least.items() if name != "activations")
    share = max(0.0, (SPARE * free - rest) / max(least["activations"], 1))
    remedy = f"max_tokens of at most {share:.2f} times what it is" if share > 0 else "a smaller model, or lora > 0"
    remedy = f'checkpointing="on", or {remedy}' if checkpointing == "off" else remedy
    return (
        f"training needs {sum(least.values()) / _GIB:.1f} GiB more on the GPU ({parts}) and {SPARE * free / _GIB:.1f} "
        f"can be used: it takes {remedy}, or an engine that keeps less"
    )


def free_bytes(device: str) -> int:
    """What can still be allocated, with what this process holds in reserve."""
    free, _ = gpu_memory(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def compute_layers_again(model: Any) -> None:
    """Let transformers keep only the input of each layer: in training mode, which must change nothing else."""
    dropout: float = getattr(model.config.get_text_config(), "attention_dropout", 0.0)
    if dropout or any(isinstance(each, torch.nn.Dropout) and each.p > 0 for each in model.modules()):
        raise ConfigurationError(f"{type(model).__name__} has dropout, with which its layers cannot be computed again")
    ways = {"use_reentrant": False, "preserve_rng_state": False, "context_fn": recomputed}
    model.gradient_checkpointing_enable(ways)
    model.train()


class _Shape:
    """Sizes of a decoder, as far as its configuration tells."""

    def __init__(self, config: Any) -> None:
        config = config.get_text_config()
        self.hidden = largest_size(config, "hidden_size")
        self.layers = largest_size(config, "num_hidden_layers")
        self.vocabulary = largest_size(config, "vocab_size")
        self.feed = largest_size(config, "intermediate_size") or 4 * self.hidden
        heads = largest_size(config, "num_attention_heads") or 1
        size = largest_size(config, "head_dim") or self.hidden // heads
        keys = largest_size(config, "num_key_value_heads") or heads
        self.attended, self.fused = heads * size, (heads + 2 * keys) * size

    @property
    def stream(self) -> int:
        """Bytes of a token between two layers: float32."""
        return 4 * self.hidden

    def per_token(self, is_fast: bool) -> tuple[int, int]:
        """Bytes a layer keeps of a token, and those it uses for a moment going backward."""
        if not is_fast:  # every operation keeps its input, some of them in float32
            kept = 2 * (14 * self.hidden + 2 * self.fused + 2 * self.attended + 6 * self.feed)
            return kept, kept
        kept = 6 * self.hidden + 2 * self.fused + 2 * self.attended + 4 * self.feed + 64
        return kept, 8 * self.feed + 22 * self.hidden + 4 * self.fused + 2 * self.attended


def largest_size(config: Any, name: str) -> int:
    """A size, the largest where layers differ; 0 where the configuration has none."""
    told, name = config.to_dict(), config.attribute_map.get(name, name)
    found = [
        told[name] if name in told else getattr(config, name, 0),
        *(layer.get(name) for layer in (told.get("per_layer_config") or {}).values()),
    ]
    return max((int(each) for some in found for each in (some if isinstance(some, list) else [some or 0])), default=0)
