"""Paths of models: a bundled name, a folder, a run's newest checkpoint, or a Hugging Face hub id.

A hub id becomes its snapshot in the local cache, whose path contains the revision.
"""

from __future__ import annotations

from pathlib import Path

from strop.errors import ModelError
from strop.models.loading.model_names import BUNDLED
from strop.storage import checkpoint
from strop.storage.hub import NotOnHub, is_hub_id, snapshot

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
