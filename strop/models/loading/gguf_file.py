"""Export of a model folder to one GGUF file for llama.cpp: Llama, Qwen2 and Qwen3, in float32.

What cannot be written exactly is refused: llama.cpp selects the pre-tokenizer by name, and another one would silently
give other tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from strop.errors import ConfigurationError, ModelError
from strop.models.loading.check_folder import read_config, read_json

FAMILIES = ("llama", "qwen2", "qwen3")
_BLOCKS = r"\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?" + _BLOCKS
_DIGITS = r"\p{N}, then GPT-2's"  # what llama.cpp calls smollm: each digit apart, before words
_NAMES = {
    "": "gpt-2",
    _DIGITS: "smollm",
    _WORDS % "": "qwen2",
    _WORDS % "{1,3}": "llama-bpe",
}  # of rules by which text is split
_CONTROL, _USER, _NORMAL = 3, 4, 1  # kinds of tokens


def write_gguf(folder: Path, out: Path) -> None:
    """Write weights, sizes, tokenizer and chat template."""
    try:
        import gguf
    except ImportError:
        raise ConfigurationError(
            "GGUF is written by llama.cpp's convert_hf_to_gguf.py where it is on the PATH, else by the gguf package: "
            "pip install 'strop[gguf]'"
        ) from None
    config = read_config(folder)
    if config.model_type not in FAMILIES or config.rope_parameters["rope_type"] != "default":
        raise ModelError(
            f"strop writes {', '.join(FAMILIES)} without scaled positions as GGUF, and {folder} is {config.model_type}:"
            " put llama.cpp's convert_hf_to_gguf.py on the PATH for others"
        )
    vocabulary = _vocabulary(folder, config.vocab_size)
    file = gguf.GGUFWriter(out, config.model_type)
    _add_sizes(file, config)
    _add_vocabulary(file, folder, config, vocabulary)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[config.model_type.upper()], config.num_hidden_layers)
    for shard in sorted(folder.glob("*.safetensors")):
        with safe_open(shard, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (it is no mapping)
                weights = _turned(name, tensors.get_tensor(name).float(), config)
                file.add_tensor(names.get_name(name, (".weight", ".bias")), weights.contiguous().numpy())
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def _turned(name: str, weights: torch.Tensor, config: Any) -> torch.Tensor:
    """Llama's queries and keys as llama.cpp turns them: pairs of a position lie side by side, not in two halves."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2])
    if config.model_type != "llama" or heads is None:
        return weights
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])  # [H, 2, D/2, ...]
    return halves.swapaxes(1, 2).reshape(weights.shape)


def _add_sizes(file: Any, config: Any) -> None:
    wide = config.head_dim if "head_dim" in vars(config) else config.hidden_size // config.num_attention_heads
    file.add_context_length(config.max_position_embeddings)
    file.add_block_count(config.num_hidden_layers)
    file.add_embedding_length(config.hidden_size)
    file.add_feed_forward_length(config.intermediate_size)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(config.num_key_value_heads)
    file.add_key_length(wide)
    file.add_value_length(wide)
    file.add_rope_dimension_count(wide)
    file.add_rope_freq_base(float(config.rope_parameters["rope_theta"]))
    file.add_layer_norm_rms_eps(config.rms_norm_eps)
    file.add_vocab_size(config.vocab_size)
    file.add_file_type(0)  # all in float32


def _vocabulary(folder: Path, size: int) -> dict[str, Any]:
    """Tokens in the order of their ids, their kinds, merges, and the name of the rule by which text is split."""
    read = read_json(folder / "tokenizer.json")
    model, split = read.get("model", {}), read.get("pre_tokenizer") or {}
    parts = split.get("pretokenizers", [split])
    rule = next((part["pattern"].get("Regex", "?") for part in parts if part.get("type") == "Split"), "")
    kinds = {part.get("type") for part in parts}
    if [part.get("type") for part in parts] == ["Digits", "ByteLevel"] and parts[0].get("individual_digits"):
        rule, kinds = _DIGITS, {"ByteLevel"}
    if model.get("type") != "BPE" or not {"ByteLevel"} <= kinds <= {"ByteLevel", "Split"} or rule not in _NAMES:
        raise ModelError(
            f"strop writes tokenizers as GGUF that are BPE of bytes and split as GPT-2, SmolLM, Qwen2 or Llama 3, and "
            f"{folder} has {model.get('type', 'none')} with {rule or ', '.join(sorted(map(str, kinds)))!r}: put "
            "llama.cpp's convert_hf_to_gguf.py on the PATH for others"
        )
    tokens = {number: (token, _NORMAL) for token, number in model["vocab"].items()}
    for each in read.get("added_tokens", []):
        tokens[each["id"]] = (each["content"], _CONTROL if each["special"] else _USER)
    listed = [tokens.get(number, (f"[PAD{number}]", _CONTROL)) for number in range(size)]
    merges = [each if isinstance(each, str) else " ".join(each) for each in model["merges"]]
    return {"tokens": [t for t, _ in listed], "kinds": [k for _, k in listed], "merges": merges, "rule": _NAMES[rule]}


def _add_vocabulary(file: Any, folder: Path, config: Any, vocabulary: dict[str, Any]) -> None:
    file.add_tokenizer_model("gpt2")  # how llama.cpp calls BPE of bytes
    file.add_tokenizer_pre(vocabulary["rule"])
    file.add_token_list(vocabulary["tokens"])
    file.add_token_types(vocabulary["kinds"])
    file.add_token_merges(vocabulary["merges"])
    ends = config.eos_token_id
    file.add_eos_token_id(ends[0] if isinstance(ends, list) else ends)
    if config.bos_token_id is not None:
        file.add_bos_token_id(config.bos_token_id)
    if config.pad_token_id is not None:
        file.add_pad_token_id(config.pad_token_id)
    file.add_chat_template(_template(folder))


def _template(folder: Path) -> str:
    beside = folder / "chat_template.jinja"
    said = read_json(folder / "tokenizer_config.json").get("chat_template", "")
    return beside.read_text(encoding="utf-8") if beside.is_file() else str(said)
