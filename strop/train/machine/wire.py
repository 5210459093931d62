"""What a trainer and its ranks say to each other: small words over pipes, tensors through files both can map."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from strop.train.batch import Batch

_LENGTH = struct.Struct(">Q")


def give_order(pipe: IO[bytes], order: dict[str, Any]) -> None:
    """From the trainer to a rank, which it started itself: only this way are pickles read."""
    body = pickle.dumps(order, protocol=5)
    pipe.write(_LENGTH.pack(len(body)) + body)
    pipe.flush()


def take_order(pipe: IO[bytes]) -> Any:
    """The next order, or None when the trainer is gone."""
    head = pipe.read(_LENGTH.size)
    return pickle.loads(pipe.read(_LENGTH.unpack(head)[0])) if len(head) == _LENGTH.size else None


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
