"""A model as a run keeps it: by a bundled name or by its folder.

Of a run that is its newest whole checkpoint, of an id on the Hugging Face hub the snapshot in the local cache, whose
path names the revision.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from strop.disk import checkpoint
from strop.errors import ModelError
from strop.models.names import BUNDLED

_ID = re.compile(r"[\w.-]+/[\w.-]+")
_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "tokenizer*", "*.model"]  # nothing that is executed


def chosen_model(name: str) -> str:
    """The name or folder that this means."""
    path = Path(name)
    if name in BUNDLED:
        return name
    if (path / "recipe.py").is_file():
        return str(checkpoint.newest_whole(path / "checkpoints")[0])
    return name if path.exists() or not _ID.fullmatch(name) else _snapshot(name)


def _snapshot(name: str) -> str:
    """From the cache; downloaded into it where it is not there yet."""
    from huggingface_hub import snapshot_download

    try:
        cached = snapshot_download(name, local_files_only=True)
        if any(Path(cached).glob("*.safetensors")):
            return cached
    except (OSError, ValueError):
        pass
    print(f"{name} is no folder here: looking for it on the Hugging Face hub", file=sys.stderr)
    try:
        return snapshot_download(name, allow_patterns=_FILES)
    except (OSError, ValueError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"model folder {name} does not exist; need a local Hugging Face model folder, a run, or the id of a model "
            f"in the local cache or on the hub, which said: {said[0]}"
        ) from None
