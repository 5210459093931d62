"""Hugging Face causal language models as strop uses them: loaded, proven to run right, and run on packed tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strop.attention import NAME, Packed, Plan, register
from strop.errors import ModelError

_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.05}


def load_model(folder: Path, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Any:
    """A causal LM from a local folder, refused unless packed attention gives what its own forward gives."""
    from transformers import AutoModelForCausalLM

    register()
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation=NAME, local_files_only=True, trust_remote_code=False
    )
    model = model.to(device).eval()
    _prove(model)
    return model


def hidden_states(model: Any, tokens: Tensor, positions: Tensor, plan: Plan) -> Tensor:
    """Last hidden states of packed tokens [T] -> [T, hidden]; `logits` makes them predictions of the next token."""
    output = model.base_model(
        input_ids=tokens.unsqueeze(0), position_ids=positions.unsqueeze(0), use_cache=False, plan=plan
    )
    return output.last_hidden_state[0]  # type: ignore[no-any-return]


def logits(model: Any, hidden: Tensor) -> Tensor:
    """[C, hidden] -> [C, V], with the scaling and capping some families add after their output layer."""
    scores: Tensor = model.get_output_embeddings()(hidden)
    config = model.config
    if (scale := getattr(config, "logit_scale", None)) is not None:
        scores = scores * scale
    if (divisor := getattr(config, "logits_scaling", None)) is not None:
        scores = scores / divisor
    if (cap := getattr(config, "final_logit_softcapping", None)) is not None:
        scores = torch.tanh(scores / cap) * cap
    return scores


def parameters(model: Any) -> dict[str, Tensor]:
    """Weights by name, tied ones once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def context_length(model: Any) -> int:
    return int(getattr(model.config, "max_position_embeddings", 1 << 20))


@torch.no_grad()
def _prove(model: Any) -> None:
    """Compare two short packed sequences with transformers' own attention, one at a time."""
    device = next(model.parameters()).device
    lengths = [5, 3]
    tokens = torch.arange(sum(lengths), device=device) % model.config.get_text_config().vocab_size
    positions = torch.cat([torch.arange(n, device=device) for n in lengths])
    ours = logits(model, hidden_states(model, tokens, positions, Packed(lengths, device)))
    model.set_attn_implementation("eager")
    theirs = torch.cat(
        [model(input_ids=part.unsqueeze(0), use_cache=False).logits[0] for part in tokens.split(lengths)]
    )
    model.set_attn_implementation(NAME)
    difference = float((ours.float() - theirs.float()).abs().max())
    if not difference <= _TOLERANCE[ours.dtype] * max(1.0, float(theirs.float().abs().max())):
        raise ModelError(
            f"{type(model).__name__} does not run right on packed sequences: its logits differ by {difference:.3g} "
            "from those it gives with transformers' own attention"
        )
