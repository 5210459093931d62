"""Tiny random models with a picture tower, saved as Hugging Face folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import CONFIG_MAPPING, AutoModelForImageTextToText, PreTrainedTokenizerFast
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from strop.models.pictures import FAMILIES, placeholders_of
from tests.tiny_models import VOCABULARY

PLACEHOLDER, START, CLOSE = 30, 32, 33  # tokens of a picture
_TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
_TOWER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 24,
    "patch_size": 4,
}
_SIGLIP = _TOWER | {"model_type": "siglip_vision_model", "vision_use_head": False}
_PATCHES: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "patch_size": 4,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 32,
}
_SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
_WHOLE = _SECTIONS | {"partial_rotary_factor": 1.0}
_WINDOW = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
_QWEN = {
    "image_token_id": PLACEHOLDER,
    "video_token_id": 31,
    "vision_start_token_id": START,
    "vision_end_token_id": CLOSE,
}
_GLM = {"image_token_id": PLACEHOLDER, "video_token_id": 31, "image_start_token_id": START, "image_end_token_id": CLOSE}
_GLM |= {"video_start_token_id": 34, "video_end_token_id": 35}
_GLM_TOWER = _PATCHES | {"image_size": 24}
_ROUTED = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_DELTA = {
    "rope_parameters": _WHOLE,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
_EXPERTS = {
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}


def _idefics() -> dict[str, Any]:
    parts = {"text_config": _TEXT | {"model_type": "llama"}, "vision_config": _TOWER}
    return parts | {"image_token_id": PLACEHOLDER, "scale_factor": 2, "pad_token_id": 2}


PARTS: dict[str, dict[str, Any]] = {
    "qwen2_vl": {
        "text_config": _TEXT | {"rope_parameters": _SECTIONS},
        "vision_config": _PATCHES | {"embed_dim": 32, "mlp_ratio": 2},
        **_QWEN,
    },
    "qwen2_5_vl": {
        "text_config": _TEXT | {"rope_parameters": _SECTIONS},
        "vision_config": _PATCHES | {"fullatt_block_indexes": [1], "window_size": 16},
        **_QWEN,
    },
    "qwen3_vl": {
        "text_config": _TEXT | {"rope_parameters": _SECTIONS},
        "vision_config": _PATCHES | {"deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64},
        **_QWEN,
    },
    "qwen3_5": {"text_config": _TEXT | _DELTA, "vision_config": _PATCHES | {"num_position_embeddings": 64}, **_QWEN},
    "qwen3_5_moe": {
        "text_config": _TEXT | _DELTA | _ROUTED | {"shared_expert_intermediate_size": 16},
        "vision_config": _PATCHES | {"num_position_embeddings": 64},
        **_QWEN,
    },
    "qwen3_vl_moe": {
        "text_config": _TEXT | {"rope_parameters": _SECTIONS} | _ROUTED,
        "vision_config": _PATCHES | {"deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64},
        **_QWEN,
    },
    "glm4v": {"text_config": _TEXT | {"rope_parameters": _WHOLE}, "vision_config": _GLM_TOWER, **_GLM},
    "glm4v_moe": {
        "text_config": _TEXT | {"rope_parameters": _WHOLE} | _EXPERTS,
        "vision_config": _GLM_TOWER,
        **_GLM,
    },
    "idefics3": _idefics(),
    "smolvlm": _idefics(),
    "mistral3": {
        "text_config": _TEXT | {"model_type": "mistral"},
        "vision_config": _TOWER | {"model_type": "pixtral", "head_dim": 16},
        "image_token_index": PLACEHOLDER,
        "spatial_merge_size": 2,
    },
    "internvl": {
        "text_config": _TEXT | {"model_type": "qwen2"},
        "vision_config": _TOWER | {"image_size": [24, 24], "patch_size": [4, 4]},
        "image_token_id": PLACEHOLDER,
        "downsample_ratio": 0.5,
    },
    "llava": {
        "text_config": _TEXT | {"model_type": "llama"},
        "vision_config": _TOWER | {"model_type": "clip_vision_model"},
        "image_token_index": PLACEHOLDER,
    },
    "paligemma": {
        "text_config": _TEXT | {"model_type": "gemma", "num_key_value_heads": 1},
        "vision_config": _SIGLIP | {"projection_dim": 32},
        "image_token_index": PLACEHOLDER,
        "projection_dim": 32,
    },
    "gemma3": {
        "text_config": _TEXT | _WINDOW | {"model_type": "gemma3_text", "query_pre_attn_scalar": 8},
        "vision_config": _SIGLIP,
        "mm_tokens_per_image": 9,
        "image_token_index": PLACEHOLDER,
        "boi_token_index": START,
        "eoi_token_index": CLOSE,
    },
    "gemma4": {
        "text_config": _TEXT
        | _WINDOW
        | {"global_head_dim": 8, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 40}
        | {"num_kv_shared_layers": 0},
        "vision_config": _TOWER | {"num_key_value_heads": 2, "head_dim": 16},
        "image_token_id": PLACEHOLDER,
        "audio_config": None,
        "boi_token_id": START,
        "eoi_token_id": CLOSE,
    },
}


_TOKENS = {
    "<video>": 31,
    "<start>": START,
    "<close>": CLOSE,
    "<fake_token_around_image>": 34,
    "<global-img>": 35,
    "<row_1_col_1>": 36,
    "<row_1_col_2>": 37,
    "[IMG_BREAK]": 38,
    "[IMG_END]": 39,
}
_SHOWN = "{% if c.type == 'image' %}PICTURE{% else %}{{ c.text }}{% endif %}"
_TEMPLATE = "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
_TEMPLATE += "{% for c in m.content %}" + _SHOWN + "{% endfor %}{% endif %}</s>{% endfor %}"


def _picture_processor(family: str) -> Any:
    if family in ("idefics3", "smolvlm"):
        sides = {"size": {"longest_edge": 48}, "max_image_size": {"longest_edge": 24}}
        kind = Idefics3ImageProcessorPil if family == "idefics3" else SmolVLMImageProcessorPil
        return kind(**sides, do_image_splitting=True)
    if family == "gemma3":
        return Gemma3ImageProcessorPil(size={"height": 24, "width": 24}, image_seq_length=9)
    if family == "mistral3":
        return PixtralImageProcessorPil(size={"longest_edge": 32}, patch_size=8)
    sides = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2}
    return Qwen2VLImageProcessorPil(**sides, min_pixels=16 * 16, max_pixels=32 * 32)


def _save_picture_parts(folder: Path, family: str) -> None:
    """A tokenizer of letters with the special tokens of pictures, a chat template, and an image processor."""
    letters = {chr(ord("a") + i - 4): i for i in range(4, PLACEHOLDER)}
    special = {"<image>": PLACEHOLDER, **_TOKENS}
    tokenizer = Tokenizer(
        WordLevel({"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3, **letters, **special}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    marker = "<start><image><close>" if family.startswith("qwen") else "<start>" if family == "gemma3" else "<image>"
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=list(special),
        chat_template=_TEMPLATE.replace("PICTURE", marker),
    ).save_pretrained(folder)
    if family in FAMILIES:
        _picture_processor(family).save_pretrained(folder)


def save_tower_model(folder: Path, family: str, seed: int = 0, spread: float = 2.0) -> Path:
    """A random model with predictions away from uniform (`spread` multiplies its matrices), and all it needs to see."""
    torch.manual_seed(seed)
    model = AutoModelForImageTextToText.from_config(CONFIG_MAPPING[family](**PARTS[family]))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1 and not parameter.any():  # as Gemma 3 begins, to which all pictures are the same
                parameter.normal_(0, 0.02)
            parameter.mul_(spread) if parameter.ndim > 1 else parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    _save_picture_parts(folder, family)
    return folder


def load_tower_reference(folder: Path) -> Any:
    """The same weights behind transformers' own eager attention; placeholders are as unlikely as they are to strop."""
    found = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    never = torch.tensor([each for each in placeholders_of(found.config) if each < VOCABULARY])
    found.register_forward_hook(lambda _model, _given, said: mask(said, never))
    return found.eval()


def mask(said: Any, never: torch.Tensor) -> Any:
    said.logits = said.logits.index_fill(-1, never, -1e4)
    return said
