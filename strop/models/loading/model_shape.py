"""Shape of a model from its config, known before weights are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from strop.models.layers.decoder_part import freeze_tower, model_class
from strop.models.layers.eight_bit_linear import in_eight_bits
from strop.models.loading.check_folder import read_config


def outline(folder: Path, matmul_precision: str = "plain") -> Any:
    """The model that this folder describes, of which no number is in memory."""
    with torch.device("meta"):
        model = model_class(folder).from_config(read_config(folder), dtype=torch.float32)
    freeze_tower(model)
    if matmul_precision == "fp8":
        in_eight_bits(model)
    return model
