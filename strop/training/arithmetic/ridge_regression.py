"""Ridge regression on the last few batches: the learning rule of small value models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from strop.errors import CheckpointError

Table: TypeAlias = NDArray[np.float64]
LabelledBatch: TypeAlias = tuple[Table, Table]  # features [R, F], targets [R]


@dataclass(frozen=True, eq=False)
class Fit:
    """Linear prediction from standardised features."""

    centre: Table  # [F]
    spread: Table  # [F]
    slopes: Table  # [F]
    level: float

    def __call__(self, features: Table) -> float:
        return float((features - self.centre) / self.spread @ self.slopes + self.level)


def fitted(batches: Sequence[LabelledBatch], ridge: float) -> Fit:
    """min |X w - y|^2 + ridge |w|^2 over standardised features; the intercept is not penalized."""
    table, targets = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    centre, spread = table.mean(0), table.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    scaled, level = (table - centre) / spread, float(targets.mean())
    gram = scaled.T @ scaled + ridge * np.eye(scaled.shape[1])
    return Fit(centre, spread, np.linalg.solve(gram, scaled.T @ (targets - level)), level)


def write_batches(path: Path, batches: Sequence[LabelledBatch]) -> None:
    found = {f"{name}.{i}": table for i, pair in enumerate(batches) for name, table in zip("xy", pair, strict=True)}
    save_file(found or {"empty": np.zeros(1)}, path)


def read_batches(path: Path) -> list[LabelledBatch]:
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read the regression data in {path}: {error}") from error
    return [(found[f"x.{i}"], found[f"y.{i}"]) for i in range(len(found) // 2)]
