"""Validation of a trainer's settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from strop.errors import ConfigurationError, nearest
from strop.models.layers.eight_bit_linear import check_matmul_precision
from strop.models.optimizers.low_memory_adamw import HOLDINGS

if TYPE_CHECKING:
    from strop.training.trainers.torch import TorchTrainer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_BASES = ("plain", "nf4")
_TOWERS = ("frozen", "trained")
_CHOICES = ("auto", "on", "off")
SCHEDULES = ("constant", "linear", "cosine")


def check(trainer: TorchTrainer) -> None:
    """Refuse what no trainer can do."""
    if trainer.dtype not in DTYPES:
        raise ConfigurationError(f"TorchTrainer has no dtype {trainer.dtype!r}: {nearest(trainer.dtype, DTYPES)}")
    if trainer.dtype == "bfloat16" and trainer.device == "cpu":  # slower than float32 there, and some CPUs cannot
        raise ConfigurationError('bfloat16 needs a GPU: set device="cuda", or dtype="float32"')
    for name in ("fused", "checkpointing"):
        if (choice := getattr(trainer, name)) not in _CHOICES:
            raise ConfigurationError(f"TorchTrainer has no {name}={choice!r}: {nearest(choice, _CHOICES)}")
    if trainer.tower not in _TOWERS:
        raise ConfigurationError(f"TorchTrainer has no tower={trainer.tower!r}: {nearest(trainer.tower, _TOWERS)}")
    if trainer.tower == "trained" and trainer.lora:
        raise ConfigurationError('adapters stand beside decoder layers alone: set lora=0, or tower="frozen"')
    if trainer.schedule not in SCHEDULES:
        raise ConfigurationError(f"there is no schedule {trainer.schedule!r}: {nearest(trainer.schedule, SCHEDULES)}")
    for name in ("learning_rate", "max_tokens", "chunk"):
        if not 0 < getattr(trainer, name) < math.inf:
            raise ConfigurationError(f"TorchTrainer needs a finite {name} > 0, got {getattr(trainer, name)}")
    if trainer.lora < 0:
        raise ConfigurationError(f"lora is the rank of adapters: need lora >= 1, or 0 for none, got {trainer.lora}")
    if trainer.base not in _BASES:
        raise ConfigurationError(
            f"weights beside adapters cannot be held in {trainer.base!r}: {nearest(trainer.base, _BASES)}"
        )
    if trainer.base != "plain" and not trainer.lora:
        raise ConfigurationError(
            f'base="{trainer.base}" holds weights that do not learn: set lora, for example lora=32'
        )
    check_matmul_precision("TorchTrainer", trainer.matmul_precision)
    if trainer.matmul_precision != "plain" and trainer.lora:
        raise ConfigurationError("8-bit matmul is for training all weights: set lora=0")
    if (held := trainer.bytes_per_weight) and held not in HOLDINGS:
        known = "; ".join(f"{count}: {holding.words}" for count, holding in HOLDINGS.items())
        raise ConfigurationError(f"training takes 18, 10 or 6 bytes for a weight, not {held} ({known})")


def share_of_rate(trainer: TorchTrainer, num_steps: int) -> float:
    """Share of the learning rate after so many optimizer steps: it rises in a line, then falls by its schedule."""
    if num_steps + 1 < trainer.warmup_steps:
        return (num_steps + 1) / trainer.warmup_steps
    if trainer.schedule == "constant":
        return 1.0
    if not trainer.decay_steps:
        raise ConfigurationError(f"schedule={trainer.schedule} needs decay_steps, over which the rate falls to 0")
    falling = max(trainer.decay_steps - trainer.warmup_steps, 1)
    gone = min(max(num_steps - trainer.warmup_steps, 0) / falling, 1.0)
    return 1.0 - gone if trainer.schedule == "linear" else (1.0 + math.cos(math.pi * gone)) / 2
