"""A model as a run keeps it: by a bundled name or by its folder.

Of a run that is its newest whole checkpoint, of an id on the Hugging Face hub the snapshot in the local cache, whose
path names the revision.
"""

from __future__ import annotations

from pathlib import Path

from strop.errors import ModelError
from strop.models.loading.model_names import BUNDLED
from strop.storage import checkpoint
from strop.storage.hub import NotOnHub, is_hub_id, snapshot

_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "tokenizer*", "*.model"]  # nothing that is executed


def chosen_model(name: str) -> str:
    """The name or folder that this means."""
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
