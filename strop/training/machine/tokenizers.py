"""Tokenizers of model folders: copied with the weights, and compared before another model scores the same tokens."""

from __future__ import annotations

import shutil
from pathlib import Path

from strop.errors import ModelError

_COPIED = ("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt", "*.model", "*.jinja")
_OF_PICTURES = ("preprocessor_config.json", "processor_config.json")


def check_same_words(ours: Path, theirs: Path) -> None:
    """Refuse another model whose token ids mean something else."""
    from transformers import AutoTokenizer

    if not theirs.is_dir():
        raise ModelError(f"model folder {theirs} does not exist; need a local Hugging Face model folder")
    own, other = (AutoTokenizer.from_pretrained(each, local_files_only=True).get_vocab() for each in (ours, theirs))
    if own != other:
        differing = len(set(own.items()) ^ set(other.items()))
        raise ModelError(f"{theirs} has another vocabulary than {ours}: {differing} entries differ, need 0")


def copy_tokenizer(source: Path, folder: Path) -> None:
    """Everything beside the weights that a tokenizer or a chat needs."""
    for path in {path for pattern in (*_COPIED, *_OF_PICTURES) for path in source.glob(pattern) if path.is_file()}:
        shutil.copyfile(path, folder / path.name)
