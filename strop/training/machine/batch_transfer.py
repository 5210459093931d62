"""Transfer of batches from a trainer to its ranks: tensors in memory-mapped files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from strop.training.batch import Batch


def write_batches(path: Path, batches: Sequence[Batch]) -> None:
    """Tensors as they are, everything else as JSON."""
    tensors: dict[str, torch.Tensor] = {}
    facts: list[dict[str, Any]] = []
    for index, batch in enumerate(batches):
        found = {each.name: getattr(batch, each.name) for each in fields(batch)}
        named = {n: v for n, v in found.items() if isinstance(v, dict)}
        tensors |= {f"{index}.{n}": v.contiguous() for n, v in found.items() if isinstance(v, torch.Tensor)}
        tensors |= {f"{index}.{n}.{key}": v.contiguous() for n, by_name in named.items() for key, v in by_name.items()}
        facts.append({n: v for n, v in found.items() if not isinstance(v, torch.Tensor | dict)})
    save_file(tensors, path, {"batches": json.dumps(facts)})


def read_batches(path: Path) -> list[Batch]:
    with safe_open(path, "pt") as file:
        batches: list[dict[str, Any]] = json.loads(file.metadata()["batches"])
        for key in file.keys():  # noqa: SIM118
            index, name, *within = key.split(".", 2)
            place = batches[int(index)].setdefault(name, {}) if within else batches[int(index)]
            place[within[0] if within else name] = file.get_tensor(key)
    return [_batch(**found) for found in batches]


def _batch(**found: Any) -> Batch:
    for name, value in found.items():
        found[name] = tuple(value) if isinstance(value, list) else value
    return Batch(**found)
