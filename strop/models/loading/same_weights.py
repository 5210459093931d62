"""Whether two model folders hold the same weights: a student cannot be its own teacher."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from strop.errors import ModelError


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
