"""Interpolation of two models' weights (The Synergy Dilemma, 2507.07562).

Papers: synergy-dilemma
"""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.errors import ConfigurationError, ModelError
from strop.models.loading.check_folder import check_model_folder


def merge(first: Path, second: Path, share: float, folder: Path) -> Path:
    """Write a model folder with (1 - share) * first + share * second; all but the weights is the first's."""
    if not 0 <= share <= 1:
        raise ConfigurationError(f"a merged model holds a share of the second from 0 to 1, got {share}")
    for each in (first, second):
        check_model_folder(each)
    ours, theirs = _weights(first), _weights(second)
    shapes = [{name: tuple(weight.shape) for name, weight in each.items()} for each in (ours, theirs)]
    if shapes[0] != shapes[1]:
        differing = {name for name, _ in set(shapes[0].items()) ^ set(shapes[1].items())}
        raise ModelError(f"{first} and {second} are built differently: {len(differing)} weights differ in name or size")
    merged = {name: _between(ours[name], theirs[name], share) for name in ours}
    folder.mkdir(parents=True)
    for path in first.iterdir():
        if path.is_file() and not path.name.endswith((".safetensors", ".safetensors.index.json")):
            shutil.copyfile(path, folder / path.name)
    save_file(merged, folder / "model.safetensors", {"format": "pt"})
    return folder


def _between(first: Tensor, second: Tensor, share: float) -> Tensor:
    """The ends are the parents bit for bit."""
    if share in (0, 1):
        return (second if share else first).contiguous()
    return torch.lerp(first.double(), second.double(), share).to(first.dtype).contiguous()


def _weights(folder: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        try:
            found |= load_file(path)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"cannot read the weights in {path}: {error}") from error
    return found
