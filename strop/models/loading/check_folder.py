"""Checks of a model folder before training: files, sizes, and weights equal to another folder's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import CONFIG_MAPPING, AutoConfig

from strop.errors import ConfigurationError, ModelError

# What a model folder must hold to be trained from, asked before anything starts.

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")
_ADAPTERS = "adapter_config.json"  # as peft writes it
_SHOWN = 500  # letters of what transformers says
_TEMPLATES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")

MXFP4 = "mxfp4"  # experts of gpt-oss in four bits, 32 of them with one exponent


def check_model_folder(folder: Path) -> None:
    """Refuse a folder that cannot be trained from, and name what is missing."""
    if not folder.is_dir():
        raise ModelError(f"model folder {folder} does not exist; need a local Hugging Face model folder")
    if (folder / _ADAPTERS).is_file() and not (folder / "config.json").is_file():
        told = read_json(folder / _ADAPTERS)
        raise ModelError(
            f"{folder} holds adapters of rank {told.get('r')} for the model {told.get('base_model_name_or_path')}, and "
            "no model: give the folder of that model, or of a checkpoint, in which they are added to its weights"
        )
    missing = [what for what, is_there in _needed(folder).items() if not is_there]
    if missing:
        raise ModelError(f"model folder {folder} has no {' and no '.join(missing)}")
    _refuse_foreign(folder, read_json(folder / "config.json"))


def _refuse_foreign(folder: Path, config: dict[str, Any]) -> None:
    """Weights that are no plain numbers, and models whose code lies in their folder."""
    if (quantised := config.get("quantization_config")) is not None:
        method = quantised.get("quant_method", "unknown") if isinstance(quantised, dict) else quantised
        if method != MXFP4:
            raise ModelError(
                f"the weights in {folder} are quantised ({method}), and only plain weights can be trained: take the "
                f"model in float32, bfloat16 or float16 (or in {MXFP4}, which is read to bfloat16)"
            )
    family = str(config.get("model_type", ""))
    if "auto_map" in config and family not in CONFIG_MAPPING:
        raise ModelError(
            f"{folder} brings its own code (auto_map in config.json), which strop does not run, and transformers has "
            f"no architecture {family!r}: take a model whose architecture is part of transformers"
        )


def refuse_sparse(folder: Path) -> None:
    """Attention that reads only what an indexer selects: neither engine nor trainer selects keys."""
    config = read_json(folder / "config.json")
    if count := config.get("index_topk"):
        raise ModelError(
            f"{folder}: the family {config.get('model_type')} has sparse attention: each token reads the {count} keys "
            f"that an indexer selects (index_topk={count} in config.json), and strop selects none. Take a model with "
            "dense attention, such as deepseek_v3 or glm4_moe"
        )


def _needed(folder: Path) -> dict[str, bool]:
    """What a model folder must hold, in words, and whether it does."""
    has_template = any((folder / name).exists() for name in _TEMPLATES)
    return {
        "config.json": (folder / "config.json").is_file(),
        "tokenizer (tokenizer.json, as `tokenizer.save_pretrained` writes it)": any(
            (folder / name).is_file() for name in _TOKENIZERS
        ),
        "chat template (chat_template.jinja, or `chat_template` in tokenizer_config.json; base models have none: take"
        " an instruct model or write a template)": has_template
        or bool(read_json(folder / "tokenizer_config.json").get("chat_template")),
        "weights (*.safetensors, and every shard its index names)": _has_weights(folder),
    }


def _has_weights(folder: Path) -> bool:
    shards = set(read_json(folder / "model.safetensors.index.json").get("weight_map", {}).values())
    return any(folder.glob("*.safetensors")) and all((folder / str(shard)).is_file() for shard in shards)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{path} must hold a JSON object, got {type(found).__name__}")
    return found


def read_config(folder: Path) -> Any:
    """The model's configuration with the defaults of its architecture; no code of the folder is run."""
    try:
        return AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    except Exception as error:  # each family checks its own in its own way
        told = " ".join(str(error).split())[:_SHOWN]
        raise ModelError(f"{folder}/config.json describes no model that transformers knows: {told}") from error


def longest_sequence(config: Any) -> int | None:
    """Tokens of the longest one that a model reads alike wherever it stands; None where nothing limits it.

    With longrope every position turns otherwise once a sequence is longer than the original length: keys computed
    before that are of another model, and in transformers the longest of a batch decides for all.
    """
    config = config.get_text_config()
    found = getattr(config, "rope_parameters", None) or {}
    lengths = [
        rope.get("original_max_position_embeddings")
        for rope in (found, *found.values())
        if isinstance(rope, dict) and rope.get("rope_type") == "longrope"
    ]
    if not all(isinstance(each, int) for each in lengths):
        raise ModelError(
            f"the model's longrope needs original_max_position_embeddings as a number, got {lengths[-1]!r}"
        )
    known = (getattr(config, "max_position_embeddings", None), *lengths)
    return min((each for each in known if each), default=None)


def check_context(folder: Path, context: int) -> None:
    """Refuse contexts that are longer than the model's sequences may be."""
    config = read_config(folder)
    limit = longest_sequence(config)
    if limit is None or context <= limit:
        return
    known = getattr(config.get_text_config(), "max_position_embeddings", None)
    why = "" if limit == known else f": of its {known}, those beyond change what the first ones mean (longrope)"
    raise ConfigurationError(f"context={context} is more than the {limit} positions of the model in {folder}{why}")


# Sizes in config.json that the weights beside it do not have: refused before memory for them is asked for.

# each is as long as some side of a tensor, or one of the parts that such a side is made of
_SIDES = ("hidden_size", "vocab_size", "intermediate_size", "moe_intermediate_size", "num_attention_heads", "head_dim")
_COUNTS = ("num_hidden_layers", "num_experts", "num_local_experts", "n_routed_experts")


def check_sizes(folder: Path, config: Any) -> None:
    """Refuse a model of which config.json says far more than its files hold."""
    shapes = _shapes(folder)
    if not shapes:
        return
    longest, most = (
        max(max(shape, default=1) for shape in shapes),
        max(len(shapes), *(max(s, default=1) for s in shapes)),
    )
    text = config.get_text_config()
    told, names_here = text.to_dict(), text.attribute_map  # as a dictionary: layers may have sizes of their own
    for names, limit in ((_SIDES, longest), (_COUNTS, most)):
        for name in names:
            value = told.get(names_here.get(name, name))
            if isinstance(value, int) and not 0 <= value <= limit:
                raise ModelError(
                    f"{folder}/config.json says {name}={str(value)[:30]}, and its {len(shapes)} tensors have no side "
                    f"longer than {longest}: the configuration is of another model"
                )


def _shapes(folder: Path) -> list[list[int]]:
    found: list[list[int]] = []
    for file in sorted(folder.glob("model*.safetensors")):
        try:
            with safe_open(file, "np") as weights:
                found += [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118 (no mapping)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{file} cannot be read: {error}") from error
    return found


# Whether two model folders hold the same weights: a student cannot be its own teacher.


def same_weights(one: Path, other: Path) -> bool:
    """Read tensor by tensor and only up to the first difference, so that different models cost nothing."""
    if one.resolve() == other.resolve():
        return True
    first, second = _places(one), _places(other)
    return bool(first) and set(first) == set(second) and all(_is_equal(n, first[n], second[n]) for n in sorted(first))


def _places(folder: Path) -> dict[str, Path]:
    """The file of each tensor."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "pt") as tensors:
                found |= dict.fromkeys(tensors.keys(), path)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"cannot read the weights in {path}: {error}") from error
    return found


def _is_equal(name: str, one: Path, other: Path) -> bool:
    with safe_open(one, "pt") as first, safe_open(other, "pt") as second:
        return torch.equal(first.get_tensor(name), second.get_tensor(name))
