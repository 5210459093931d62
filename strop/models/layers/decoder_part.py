"""Decoder of a model folder, found beside a picture tower where there is one.

Families with pictures nest a text decoder and a vision tower in one model. Text needs the decoder alone; the tower's
weights are kept, frozen unless a trainer says otherwise, and written back as they came.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from strop.models.loading.check_folder import read_config


def has_tower(config: Any) -> bool:
    """Whether a configuration nests that of a text decoder beside another part."""
    return config.get_text_config() is not config


def decoder_of(model: Any) -> Any:
    """The module that reads embeddings from left to right."""
    found = model.get_decoder() if has_tower(model.config) else model.base_model
    if found is not model and found.get_output_embeddings() is None:
        return found
    words = model.get_input_embeddings()  # some name a whole model, or a part that they have not
    return next(each for each in model.modules() if words in each.children())


def named_decoder_modules(model: Any) -> list[tuple[str, Any]]:
    """Modules of the decoder and of the output layer, by their names in the whole model."""
    if not has_tower(model.config):
        return list(model.named_modules())
    wanted = {id(each) for part in (decoder_of(model), model.get_output_embeddings()) for each in part.modules()}
    return [(name, each) for name, each in model.named_modules() if id(each) in wanted]


def freeze_tower(model: Any) -> None:
    """Let only the decoder and the output layer learn."""
    if has_tower(model.config):
        learning = {id(each) for _, module in named_decoder_modules(model) for each in module.parameters()}
        for parameter in model.parameters():
            parameter.requires_grad_(id(parameter) in learning)


def model_class(folder: Path) -> Any:
    """The class of transformers that reads a folder whole: one with a picture tower keeps it."""
    return class_of(read_config(folder))


def class_of(config: Any) -> Any:
    """The same for a configuration."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING as WITH_PICTURES

    return AutoModelForImageTextToText if type(config) in WITH_PICTURES else AutoModelForCausalLM
