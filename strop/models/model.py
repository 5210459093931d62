"""Hugging Face causal language models: loading, verification, and forward passes on packed tokens."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strop.errors import ConfigurationError, ModelError
from strop.models.layers import mixers, routers
from strop.models.layers.adapters import is_adapter
from strop.models.layers.attention import NAME, AttentionPlan, Planned, register
from strop.models.layers.decoder_part import decoder_of, freeze_tower, has_tower
from strop.models.loading.check_folder import longest_sequence, read_json, refuse_sparse
from strop.models.loading.load_weights import read_model
from strop.models.loading.model_names import families_that_run
from strop.models.loading.prove_forward import NUM_TOKENS, what_differs
from strop.models.pictures import ReadArrays, decoder_inputs, without_placeholders
from strop.models.torch_setup import device_problem

_ADAPTED = ".base_layer."  # in names, between a layer and its own weight


def load_model(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    prepare: Callable[[Any, str], None] | None = None,
) -> Any:
    """A causal LM from a local folder, refused unless packed attention gives what its own forward gives.

    `prepare(model, device)` may change its weights before they are all on the device.
    """
    if problem := device_problem(device):
        raise ConfigurationError(problem)
    # cuDNN's attention gives wrong values for some inputs with few key heads (github.com/pytorch/pytorch/issues/193893)
    torch.backends.cuda.enable_cudnn_sdp(False)
    register()
    refuse_sparse(folder)
    try:
        model = read_model(folder, dtype, NAME)
        freeze_tower(model)
        mixers.on_plans(model)
        routers.on_plans(model)
        if prepare is not None:
            prepare(model, device)
        model = model.to(device).eval()
        problem = what_differs(model, partial(_read, model), _text(model, NUM_TOKENS), context_length(model))
    except torch.OutOfMemoryError:
        raise
    except (
        KeyError,
        AttributeError,
        RuntimeError,
        TypeError,
        NotImplementedError,
    ) as error:  # a family built otherwise
        family = read_json(folder / "config.json").get("model_type")
        raise ModelError(
            f"{folder}: the family {family} does not run on packed sequences ({type(error).__name__}: {error}). "
            + families_that_run()
        ) from error
    if problem:
        raise ModelError(f"{folder}: {problem}. {families_that_run()}")
    return model


def hidden_states(
    model: Any,
    tokens: Tensor,
    positions: Tensor,
    plan: AttentionPlan,
    embeddings: Tensor | None = None,
    pictures: ReadArrays | None = None,
) -> Tensor:
    """Last hidden states of packed tokens [T] -> [T, hidden]; `logits` makes them predictions of the next token.

    With `embeddings` [T, hidden] those are read in place of the tokens' own. Words below 0 are read from `pictures`;
    where heads turn by places in them, positions are [3, T].
    """
    given = None if embeddings is None else {"inputs_embeds": embeddings.unsqueeze(0)}
    read = given or decoder_inputs(model, tokens, pictures)
    with Planned(plan, positions if positions.ndim == 1 else None):
        output = decoder_of(model)(**read, position_ids=positions.unsqueeze(-2), use_cache=False)
    return output.last_hidden_state[0]  # type: ignore[no-any-return]


def logits(model: Any, hidden: Tensor) -> Tensor:
    """[C, hidden] -> [C, V], with the scaling and capping some families add after their output layer.

    A placeholder of a picture is never sampled.
    """
    return without_placeholders(_logits(model.get_output_embeddings(), model.config, hidden), model.config)


def _text(model: Any, count: int) -> Tensor:
    """Tokens to compare by, none of which stands for a picture."""
    named = vars(model.config).items() if has_tower(model.config) else ()
    others = torch.tensor([n for name, n in named if name.endswith(("token_id", "token_index")) and isinstance(n, int)])
    tokens = probe(model, count)
    for _ in others:
        tokens = torch.where(torch.isin(tokens, others.to(tokens)), tokens - 1, tokens)
    return tokens


def _read(model: Any, tokens: Tensor, positions: Tensor, plan: AttentionPlan) -> Tensor:
    return _logits(model.get_output_embeddings(), model.config, hidden_states(model, tokens, positions, plan))


def head_of(model: Any) -> Callable[[Tensor], Tensor]:
    """`logits` of the model as it is now, whatever becomes of its weights."""
    layer, config = copy.deepcopy(model.get_output_embeddings()).requires_grad_(False), model.config
    return lambda hidden: without_placeholders(_logits(layer, config, hidden), config)


def _logits(layer: Any, config: Any, hidden: Tensor) -> Tensor:
    if hidden.dtype == torch.float32 and not torch.is_autocast_enabled(hidden.device.type):
        hidden = hidden.to(layer.weight.dtype)  # some families keep their residual stream in float32
    scores: Tensor = layer(hidden)
    config = config.get_text_config()
    if (scale := getattr(config, "logit_scale", None)) is not None:
        scores = scores * scale
    if (divisor := getattr(config, "logits_scaling", None)) is not None:
        scores = scores / divisor
    if (cap := getattr(config, "final_logit_softcapping", None)) is not None:
        scores = torch.tanh(scores / cap) * cap
    return scores


def parameters(model: Any) -> dict[str, Tensor]:
    """Weights by name, tied ones once; adapters of low rank are added to the weights they belong to.

    Such a sum is rounded once, to the type of the weight.
    """
    return dict(each_parameter(model))


def each_parameter(model: Any) -> Iterator[tuple[str, Tensor]]:
    """The same one by one, for whoever has no room for all of them."""
    modules = dict(model.named_modules())
    for name, parameter in model.named_parameters():
        if is_adapter(name):
            continue
        owner, _, rest = name.partition(_ADAPTED)
        if rest in ("weight", "codes"):  # or in four bits
            yield f"{owner}.weight", _adapted(modules[owner])
        elif rest != "scales":
            yield name.replace(_ADAPTED, "."), parameter.detach()


@torch.no_grad()
def _adapted(module: Any) -> Tensor:
    weight, added = module.weight.detach(), module.added
    merged: Tensor = (weight + added).to(weight.dtype)
    return merged.contiguous()


def unadapted(model: Any) -> dict[str, Tensor]:
    """Weights by name without what adapters add: no copies."""
    named = model.named_parameters()
    return {name.replace(_ADAPTED, "."): each.detach() for name, each in named if not is_adapter(name)}


def context_length(model: Any) -> int:
    return longest_sequence(model.config) or 1 << 20


def probe(model: Any, count: int) -> Tensor:
    """Tokens to compare two computations by, from all over the vocabulary: [count].

    The first ones of a vocabulary are mostly special and hardly trained; in half precision, rounding alone can change
    what a model makes of them beyond recognition.
    """
    weight = model.get_input_embeddings().weight
    return ((torch.arange(count, device=weight.device) + 1) * len(weight)).div(count + 1, rounding_mode="floor")
