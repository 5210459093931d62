"""Tiny models of families that keep states, sink attention, see in chunks, or route to experts on the slow path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests.tiny_models import END, VOCABULARY, save_tokenizer

COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": END,
    "pad_token_id": 2,
}
_DELTA: dict[str, Any] = {
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_conv_kernel_dim": 4,
}
_EXPERTS: dict[str, Any] = {
    "num_experts": 6,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}
_LOCAL: dict[str, Any] = {"num_local_experts": 6, "num_experts_per_tok": 3}
_MAMBA: dict[str, Any] = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 16,
    "mamba_n_groups": 2,
    "mamba_chunk_size": 16,
}
_CONVOLUTIONS = {"layer_types": ["conv", "full_attention"] * 2}

PARTS: dict[str, dict[str, Any]] = {
    "gpt_oss": _LOCAL | {"sliding_window": 24},
    "qwen3_5_text": _DELTA,
    "qwen3_5_moe_text": _DELTA | _EXPERTS,
    "qwen3_next": _DELTA | _EXPERTS,
    "nemotron_h": {
        "layers_block_type": ["mamba", "attention", "moe", "mamba"],
        "mamba_num_heads": 8,
        "mamba_head_dim": 8,
        "ssm_state_size": 16,
        "n_groups": 2,
        "chunk_size": 16,
        "n_routed_experts": 6,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 16,
        "moe_shared_expert_intermediate_size": 16,
        "n_group": 1,
        "topk_group": 1,
    },
    "granitemoehybrid": _MAMBA
    | _LOCAL
    | {"layer_types": ["mamba", "attention"] * 2, "mamba_expand": 2, "shared_intermediate_size": 16},
    "falcon_h1": _MAMBA | {"mamba_d_ssm": 64},
    "bamba": _MAMBA | {"mamba_expand": 2, "attn_layer_indices": [1, 3]},
    "mamba2": {"num_heads": 8, "head_dim": 8, "state_size": 16, "n_groups": 2, "expand": 2, "chunk_size": 16},
    "olmo_hybrid": _DELTA | {"layer_types": ["linear_attention", "full_attention"] * 2, "linear_num_key_heads": 4},
    "lfm2": _CONVOLUTIONS | {"block_auto_adjust_ff_dim": False},
    "lfm2_moe": _CONVOLUTIONS
    | {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 16, "num_dense_layers": 1},
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "num_experts": 4,
        "mamba_d_state": 8,
        "mamba_dt_rank": 4,
    },
    "llama4_text": {"intermediate_size_mlp": 48, "num_local_experts": 4, "attention_chunk_size": 32},
    "olmoe": {"num_experts": 6, "num_experts_per_tok": 3, "sliding_window": 24},
    "phimoe": {"num_local_experts": 6, "sliding_window": 24},
    "doge": {"num_experts": 4, "sliding_window": 24},
}
MASKS_ALONE = ("olmoe", "phimoe", "doge")  # their windows are in masks that strop does not read


def save_state_model(folder: Path, family: str, spread: float = 0.1, seed: int = 0, **changes: Any) -> Path:
    """A random model with weights of this spread, and a tokenizer."""
    torch.manual_seed(seed)
    config = CONFIG_MAPPING[family](**COMMON | PARTS[family] | {"initializer_range": spread} | changes)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim < 2 and not name.endswith(("A_log", "dt_bias", "D")):
                parameter.add_(torch.randn_like(parameter) * spread)
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def load_eager(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The same weights behind transformers' own layers."""
    how: dict[str, Any] = {"attn_implementation": "eager", "experts_implementation": "eager"}
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **how).eval()
