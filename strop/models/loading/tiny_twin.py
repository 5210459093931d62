"""Tiny twins of models: the same architecture, flags and pattern of layers in 4 layers of width 64, windows of 8.

What a model's code does wrong shows in a second on such a twin: in 70 tokens every window, chunk and pattern is passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from strop.models.layers.decoder_part import class_of

LAYERS, WIDTH, HEADS, HEAD, VOCABULARY, WINDOW = 4, 64, 4, 32, 512, 8
_DEPTHS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_blocks", "decoder_layers", "encoder_layers",
    "num_decoder_layers", "num_encoder_layers", "depth",
)  # fmt: skip
_WIDTHS = ("hidden_size", "d_model", "n_embd", "embedding_dim", "emb_dim", "dim")
_IN_WIDTHS = (
    "intermediate_size", "ffn_dim", "ffn_hidden_size", "dff", "dim_ff", "d_inner", "n_inner", "embedding_size",
    "lru_width", "word_embed_proj_dim", "attention_hidden_size", "feed_forward_size", "out_hidden_size",
)  # fmt: skip
_WINDOWS = (
    "sliding_window", "sliding_window_size", "window_size", "attention_window_size", "attention_chunk_size",
    "keep_window_size", "local_attention", "index_topk", "index_block_size",
)  # fmt: skip
_EXPERTS = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "zero_expert_num",
)  # fmt: skip
_INDICES = (
    "hybrid_layer_ids", "full_attn_idxs", "attn_layer_indices", "mlp_only_layers", "moe_layers",
    "cross_attention_layers",
)  # fmt: skip
_CHOSEN = ("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token", "top_k_experts", "moe_top_k")
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "swa_num_key_value_heads")
_HEADS = (
    "num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads", "decoder_attention_heads",
    "encoder_attention_heads", "num_decoder_attention_heads", "num_encoder_attention_heads", "index_n_heads",
    "swa_num_attention_heads", "linear_num_value_heads", "linear_num_heads", "num_attention_heads_per_layer",
)  # fmt: skip
_FIXED = {
    "kv_channels": HEAD, "dim_head": HEAD, "d_head": WIDTH // HEADS, "attention_head_size": 16,
    "swa_head_dim": HEAD, "global_head_dim": HEAD, "rotary_dim": 16, "q_lora_rank": 32, "kv_lora_rank": 32,
    "o_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "qk_head_dim": 32, "v_head_dim": 16,
    "index_head_dim": 32, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_head_dim": 16,
    "linear_num_key_heads": 2, "mamba_d_state": 16, "state_size": 16, "ssm_state_size": 16, "mamba_d_head": 32,
    "mamba_head_dim": 32, "mamba_headdim": 32, "mamba_n_heads": 4, "mamba_num_heads": 4, "mamba_d_ssm": 128,
    "n_mamba_heads": 4, "time_step_rank": 4, "mamba_dt_rank": 4, "mamba_chunk_size": 16, "chunk_size": 16,
    "hidden_size_per_layer_input": 16, "laurel_rank": 16, "adapter_rank": 16, "gated_norm_rank": 16, "hc_lowrank": 16,
    "ple_embed_dim": 64, "block_multiple_of": 16, "d_rel": 16, "query_pre_attn_scalar": 32,
}  # fmt: skip
_AT_MOST = {
    "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1,
    "first_k_dense_replace": 1, "num_dense_layers": 1, "moe_layer_start_index": 1, "moe_layer_end_index": 3,
    "sliding_window_pattern": 4, "_sliding_window_pattern": 4, "layer_group_size": 4, "global_attn_every_n_layers": 4,
    "max_window_layers": 2, "n_shared_experts": 1, "num_shared_experts": 1, "moe_num_shared_experts": 1,
    "n_group": 2, "num_expert_group": 2, "n_groups": 2, "mamba_n_groups": 2, "mamba_ngroups": 2, "topk_group": 1,
    "index_topk_blocks": 1, "o_groups": 2, "n_positions": 2048, "max_position_embeddings": 2048, "n_ctx": 2048,
    "max_seq_len": 2048, "num_layers_per_stack": 2, "num_nextn_predict_layers": 0, "num_mem_blocks": 1,
    "ngram_vocab_size_base": 512, "split_ngram_parts": 1, "rel_extent": 64, "n_layers_per_attn_res_block": 2,
    "num_kv_shared_layers": 1, "floor_scale": 16, "log_scaling_n_floor": 16,
}  # fmt: skip


def tiny_twin(config: Any, sets_windows: bool = False) -> Any:
    """The configuration of a twin; `sets_windows`: also where this model has windows switched off."""
    found = _shrunk(config.to_dict(), sets_windows)
    twin = type(config).from_dict(found)
    for part in {id(each): each for each in (twin, *_parts(twin))}.values():
        part.eos_token_id = None  # completions end where the comparison says
    return twin


def has_experts(config: Any) -> bool:
    """Whether a token takes some of several experts."""
    found = config.get_text_config().to_dict()
    return any(isinstance(found.get(name), int) and found[name] > 1 for name in _EXPERTS)


def save_twin(config: Any, folder: Path, seed: int = 0, spread: float = 4.0) -> Path:
    """A twin's random weights; `spread` multiplies its matrices, so that what it predicts is far from uniform."""
    torch.manual_seed(seed)
    model = class_of(config).from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and not name.endswith("_log"):  # rates of decay would overflow
                parameter.mul_(spread)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return folder


def _parts(config: Any) -> list[Any]:
    """Configurations inside this one."""
    return [getattr(config, name) for name in config.sub_configs if getattr(config, name, None) is not None]


def _shrunk(values: Mapping[str, Any], sets_windows: bool) -> dict[str, Any]:
    sizes = _Sizes(values)
    found = dict(values)
    for name, value in values.items():
        if isinstance(value, dict) and "model_type" in value:
            found[name] = _shrunk(value, sets_windows)
        elif name == "per_layer_config" and isinstance(value, dict):
            found[name] = sizes.by_layer(value)
        elif name in _INDICES and isinstance(value, list):
            found[name] = [place for place, layer in enumerate(sizes.kept) if layer in value]
        elif isinstance(value, list) and len(value) == sizes.depth > LAYERS:
            found[name] = [sizes.sized(name, value[layer]) for layer in sizes.kept]
        else:
            found[name] = sizes.sized(name, value)
    return _windowed(found) if sets_windows else found


def _windowed(values: dict[str, Any]) -> dict[str, Any]:
    """Windows where a model has them switched off, in every other layer where layers say so themselves."""
    found = values | {name: WINDOW for name in _WINDOWS[:2] if name in values}
    found |= {name: True for name in ("use_sliding_window",) if name in values}
    kinds = values.get("layer_types")
    if "sliding_window" in values and isinstance(kinds, list) and set(kinds) == {"full_attention"}:
        found["layer_types"] = [("sliding_attention", "full_attention")[place % 2] for place in range(len(kinds))]
    return found


class _Sizes:
    """The sizes of one configuration, and those of its twin."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.width, self.heads, self.depth = (
            next((values[name] for name in names if isinstance(values.get(name), int)), 0)
            for names in (_WIDTHS, _HEADS, _DEPTHS)
        )
        is_split = values.get("head_dim") is not None and values["head_dim"] * self.heads == self.width
        is_rotary = values.get("head_dim") == values.get("qk_rope_head_dim", -1)
        self.head = WIDTH // HEADS if is_split or is_rotary else HEAD
        self.kept = self._layers()

    def _layers(self) -> list[int]:
        """The layers that a twin keeps: the first of each kind, then the second of each, then the earliest."""
        lists = [each for each in self.values.values() if isinstance(each, list) and len(each) == self.depth]
        chosen = [self.values[name] for name in _INDICES if isinstance(self.values.get(name), list)]
        kinds = [repr([each[i] for each in lists] + [i in each for each in chosen]) for i in range(self.depth)]
        earlier = [kinds[:layer].count(kind) for layer, kind in enumerate(kinds)]
        order = sorted(range(self.depth), key=lambda layer: (min(earlier[layer], 2), layer))
        return sorted(order[:LAYERS])

    def by_layer(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Values that single layers have instead of the model's; they stay different."""
        told = {int(layer): values for layer, values in value.items()}
        sizes = {layer: _Sizes({**self.values, **values}) for layer, values in told.items()}
        return {
            str(place): {
                name: self._other(name, sizes[layer].sized(name, each), each) for name, each in told[layer].items()
            }
            for place, layer in enumerate(self.kept)
            if layer in told
        }

    def _other(self, name: str, small: Any, value: Any) -> Any:
        return 2 * self.head if name == "head_dim" and value != self.values.get(name) else small

    def sized(self, name: str, value: Any) -> Any:
        """One value of a configuration as a twin has it."""
        if name == "rope_parameters" or name == "rope_scaling":
            return _rotation(value, self.head)
        if name.endswith("_token_id") or name.endswith("_token_ids"):
            return _token(value)
        if name == "head_dim" and isinstance(value, int):
            return self.head
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        if name in _DEPTHS:
            return min(value, LAYERS)
        if name in _WIDTHS:
            return WIDTH
        if name.endswith(_IN_WIDTHS) or name == "intermediate_size_mlp":
            return value and max(16, WIDTH * value // self.width // 16 * 16) if self.width else value
        if name in _WINDOWS:
            return min(value, WINDOW) if value > 0 else value
        if name in _KEY_HEADS:
            return HEADS if value == self.heads else 1 if value == 1 else 2
        if name in _HEADS:
            return HEADS
        if name in _EXPERTS or name in _CHOSEN:
            return min(value, 4 if name in _EXPERTS else 2)
        if "vocab" in name and name not in _AT_MOST:
            return min(value, VOCABULARY)
        return min(value, _AT_MOST[name]) if name in _AT_MOST else _FIXED.get(name, value) if value else value


def _token(value: Any) -> Any:
    if isinstance(value, list):
        return [_token(each) for each in value]
    small = VOCABULARY // 2  # the first half is text
    return small + value % small if isinstance(value, int) and value >= small else value


def _rotation(value: Any, head: int) -> Any:
    """Lists of a rotation's factors and sections fit the smaller heads."""
    if not isinstance(value, dict):
        return value
    found = {name: _rotation(each, head) for name, each in value.items()}
    half = int(head * float(value.get("partial_rotary_factor") or 1.0)) // 2
    for name in ("short_factor", "long_factor"):
        if isinstance(value.get(name), list):
            found[name] = value[name][:half]
    if isinstance(sections := value.get("mrope_section"), list):
        rest = [half * each // sum(sections) for each in sections[1:]]
        found["mrope_section"] = [half - sum(rest), *rest]
    return found
