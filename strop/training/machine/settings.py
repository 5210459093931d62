"""What a trainer's settings may be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from strop.errors import ConfigurationError, nearest
from strop.models.frugal import HOLDINGS

if TYPE_CHECKING:
    from strop.training.trainers.torch import TorchTrainer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_CHOICES = ("auto", "on", "off")


def check(trainer: TorchTrainer) -> None:
    """Refuse what no trainer can do."""
    if trainer.dtype not in DTYPES:
        raise ConfigurationError(f"TorchTrainer has no dtype {trainer.dtype!r}: {nearest(trainer.dtype, DTYPES)}")
    if trainer.dtype == "bfloat16" and trainer.device == "cpu":  # slower than float32 there, and some CPUs cannot
        raise ConfigurationError('bfloat16 needs a GPU: set device="cuda", or dtype="float32"')
    for name in ("fused", "checkpointing"):
        if (choice := getattr(trainer, name)) not in _CHOICES:
            raise ConfigurationError(f"TorchTrainer has no {name}={choice!r}: {nearest(choice, _CHOICES)}")
    for name in ("learning_rate", "max_tokens", "chunk"):
        if not 0 < getattr(trainer, name) < math.inf:
            raise ConfigurationError(f"TorchTrainer needs a finite {name} > 0, got {getattr(trainer, name)}")
    if trainer.lora < 0:
        raise ConfigurationError(f"lora is the rank of adapters: need lora >= 1, or 0 for none, got {trainer.lora}")
    if (held := trainer.bytes_per_weight) and held not in HOLDINGS:
        known = "; ".join(f"{count}: {holding.words}" for count, holding in HOLDINGS.items())
        raise ConfigurationError(f"training takes 18, 10 or 6 bytes for a weight, not {held} ({known})")
