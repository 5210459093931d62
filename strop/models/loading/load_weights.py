"""Loading of models from folders, in one place: every tensor must exist in its shape, or the folder is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from strop.errors import ModelError
from strop.models.layers.decoder_part import model_class
from strop.models.loading.check_folder import MXFP4, check_sizes, read_config

_SHOWN = 5  # names of one kind


def read_model(folder: Path, dtype: torch.dtype | None = None, attention: str | None = None) -> Any:
    """A causal LM from a local folder; transformers alone would fill what is missing with random numbers.

    Without a dtype the model keeps the one it was saved in.
    """
    config = read_config(folder)
    check_sizes(folder, config)
    unpacking = _unpacking(config)
    try:
        model, found = model_class(folder).from_pretrained(
            folder,
            dtype=dtype or "auto",
            attn_implementation=attention,
            local_files_only=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,  # they are refused below, with their names
            output_loading_info=True,
            **unpacking,
        )
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        raise ModelError(f"the model in {folder} cannot be read: {error}") from error
    _refuse_gaps(folder, found)
    if unpacking:
        _forget_packing(model.config)  # what is trained, saved and sent from here on is plain
        model.is_quantized, model.hf_quantizer, model._weight_conversions = False, None, None
    if dtype is not None:
        # transformers keeps some weights in float32 (A_log of OLMo hybrid): weights that are sent have one dtype
        for weight in (each for each in model.parameters() if each.is_floating_point() and each.dtype != dtype):
            weight.data = weight.data.to(dtype)
    return model


def _unpacking(config: Any) -> dict[str, Any]:
    """How weights in four bits are read: as plain numbers."""
    packed: Any = vars(config).get("quantization_config")
    if packed is None or packed.get("quant_method") != MXFP4:
        return {}
    from transformers import Mxfp4Config

    return {"quantization_config": Mxfp4Config(dequantize=True)}


def _forget_packing(config: Any) -> None:
    vars(config).pop("quantization_config", None)


def skeleton(folder: Path, dtype: torch.dtype) -> Any:
    """The model of a folder without its weights: names, shapes and configuration, in no memory worth speaking of."""
    from transformers import GenerationConfig

    config = read_config(folder)
    check_sizes(folder, config)
    _forget_packing(config)
    try:
        with torch.device("meta"):
            model = model_class(folder).from_config(config, dtype=dtype, trust_remote_code=False)
        if (folder / "generation_config.json").is_file():
            model.generation_config = GenerationConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(f"the model in {folder} cannot be read: {error}") from error
    return model


def _refuse_gaps(folder: Path, found: dict[str, Any]) -> None:
    missing = sorted(found["missing_keys"])
    mismatched = sorted(
        f"{name} (file {list(there)}, config.json {list(due)})" for name, there, due in found["mismatched_keys"]
    )
    problems = [_named("missing", missing)] if missing else []
    problems += [_named("of another shape", mismatched)] if mismatched else []
    if unread := sorted(found["unexpected_keys"]):
        raise ModelError(
            f"{_named('without a place in the model', unread)}, in the weights of {folder}: training would write a "
            "model without them. Take the config.json that belongs to these weights, or a folder without these tensors"
        )
    if problems:
        raise ModelError(
            f"the weights in {folder} do not fit its config.json: {'; '.join(problems)}. They would begin as random "
            "numbers: take a whole model folder, or the config.json that belongs to these weights"
        )


def _named(kind: str, names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} {kind}: {', '.join(names[:_SHOWN])}{more}"
