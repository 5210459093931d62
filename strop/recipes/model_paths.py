"""Paths of models: a bundled name, a folder, a run's newest checkpoint, or a Hugging Face hub id; each perhaps with
another chat template.

A hub id becomes its snapshot in the local cache, whose path contains the revision.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError, ModelError
from strop.models.loading.check_folder import read_json
from strop.models.loading.model_names import BUNDLED, model_folder
from strop.models.loading.smollm2 import cache
from strop.storage import checkpoint
from strop.storage.hub import NotOnHub, is_hub_id, snapshot

_LONGEST_PATH = 1000  # characters
_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "tokenizer*", "*.model"]  # no code


def chosen_model(name: str) -> str:
    """The bundled name or the folder of a model."""
    path = Path(name)
    if name in BUNDLED:
        return name
    if (path / "recipe.py").is_file():
        return str(checkpoint.newest_whole(path / "checkpoints")[0])
    if path.exists() or not is_hub_id(name):
        return name
    try:
        return str(snapshot(name, "model", _FILES, lambda cached: any(cached.glob("*.safetensors"))))
    except NotOnHub as error:
        raise ModelError(
            f"model folder {name} does not exist; need a local Hugging Face model folder, a run, or the id of a model "
            f"on the hub: {error}"
        ) from None


# Chat templates of somebody's own: a folder with the model's files and another template, in strop's cache.

CHATML = """{%- for message in messages %}
{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"""
PLAIN = """{%- for message in messages %}{{ message['role'].capitalize() + ': ' + message['content'] }}
{%- if message['role'] == 'assistant' %}{{ eos_token }}{%- endif %}{{ '\\n\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{ 'Assistant:' }}{%- endif %}"""
_TEMPLATES = {"chatml": CHATML, "plain": PLAIN}
_ARGUMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_REPLACED = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json", "generation_config.json")


def text_of(given: str) -> str:
    """The text in a file, or the text itself."""
    is_file = 0 < len(given) < _LONGEST_PATH and "\n" not in given and Path(given).is_file()
    return Path(given).read_text(encoding="utf-8").strip() if is_file else given


def with_template(model: str, template: str, arguments: Sequence[str] = ()) -> str:
    """The model with this chat template, whose arguments are set; the model itself where neither is given."""
    if not template and not arguments:
        return model
    source = model_folder(model)
    if not source.is_dir():
        raise ModelError(f"model folder {source} does not exist; need a local Hugging Face model folder")
    text = "".join(map(_assignment, arguments)) + (_template(template) if template else _own_template(source))
    named = hashlib.sha256(f"{source.resolve()}\0{text}".encode()).hexdigest()[:12]
    target = cache() / "templates" / f"{source.name}-{named}"
    if not target.is_dir():
        _linked(source.resolve(), target, text)
    return str(target)


def _assignment(argument: str) -> str:
    """`enable_thinking=false` as a line of Jinja."""
    if (found := _ARGUMENT.fullmatch(argument)) is None:
        raise ConfigurationError(f"template_arguments are NAME=VALUE, such as enable_thinking=false, got {argument!r}")
    name, value = found.groups()
    is_plain = value in ("true", "false", "none") or re.fullmatch(r"-?\d+(\.\d+)?", value)
    return f"{{%- set {name} = {value if is_plain else json.dumps(value)} %}}"


def _template(given: str) -> str:
    if given in _TEMPLATES:
        return _TEMPLATES[given]
    if not Path(given).is_file():
        raise ConfigurationError(
            f"chat_template is {', '.join(_TEMPLATES)} or a Jinja file, and there is no file {given}"
        )
    return Path(given).read_text(encoding="utf-8")


def _own_template(folder: Path) -> str:
    beside = folder / "chat_template.jinja"
    found = beside.read_text(encoding="utf-8") if beside.is_file() else _config(folder).get("chat_template")
    if not isinstance(found, str):
        raise ConfigurationError(
            f"template_arguments need a chat template, and {folder} has none: set chat_template too"
        )
    return found


def _config(folder: Path) -> dict[str, Any]:
    return read_json(folder / "tokenizer_config.json")


def _linked(source: Path, target: Path, template: str) -> None:
    """A folder of links to the model's files, with a template of its own; whole or not there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as building:
        made = Path(building) / "model"
        made.mkdir()
        for file in source.iterdir():
            if file.is_file() and file.name not in _REPLACED:
                (made / file.name).symlink_to(file.resolve())
        (made / "chat_template.jinja").write_text(template, encoding="utf-8")
        tokenizer = {name: value for name, value in _config(source).items() if name != "chat_template"}
        (made / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=1))
        told = read_json(source / "generation_config.json")
        ends = told.get("eos_token_id", read_json(source / "config.json").get("eos_token_id"))
        known = ends if isinstance(ends, list) else [ends] if ends is not None else []
        added = _closing(made, template)
        told["eos_token_id"] = [*known, *(each for each in added if each not in known)]
        (made / "generation_config.json").write_text(json.dumps(told, indent=1))
        with suppress(OSError):  # somebody else was quicker
            made.rename(target)


def _closing(folder: Path, template: str) -> list[int]:
    """The token that ends a completion, where the template names one that the tokenizer has."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    if "<|im_end|>" in template and (end := tokenizer.get_vocab().get("<|im_end|>")) is not None:
        return [int(end)]
    if template.endswith(CHATML):
        raise ConfigurationError(
            "chat_template=chatml needs the tokens <|im_start|> and <|im_end|>, which this model does not have: take "
            "chat_template=plain, which ends completions with the model's own end of text"
        )
    return [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
