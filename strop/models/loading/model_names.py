"""Model names: bundled models, folders, and the families that run."""

from __future__ import annotations

import json
from pathlib import Path

from strop.models.loading.smollm2 import smollm2_folder

BUNDLED = ("pocket", "smollm2")  # names that are no folders
POCKET = Path(__file__).parents[2] / "pocket" / "model"


def model_folder(model: str) -> Path:
    """Where a run's model lies; one that comes as a package is unpacked at the first call."""
    if model == "smollm2":
        return smollm2_folder()
    return POCKET if model == "pocket" else Path(model)


def families_that_run() -> str:
    """A sentence with their names, as the sweep over all families of transformers found them."""
    found = json.loads((Path(__file__).parent / "families.json").read_text())
    names = [name for name, judged in found["families"].items() if judged["verdict"] == "runs"]
    return f"Families that run: {', '.join(names)}. `strop check MODEL` says what a model lacks"
