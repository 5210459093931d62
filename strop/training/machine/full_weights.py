"""Storage of fully trained weights and their optimizer states, in as many bytes as there is memory for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.models.layers.eight_bit_linear import in_eight_bits, outline
from strop.models.model import load_model
from strop.models.optimizers.adamw import Optimizer, read_counts
from strop.models.optimizers.low_memory_adamw import FLOAT32, HOLDINGS, FrugalOptimizer, Holding, narrowed
from strop.training.machine.forward import Forward
from strop.training.machine.llama import has_fast_path
from strop.training.machine.memory import SPARE, Room, bytes_needed, free_bytes, peak, ways

if TYPE_CHECKING:
    from strop.training.trainers.torch import TorchTrainer


def open_whole(
    folder: Path, holding: Holding, forward: Forward, matmul_precision: str
) -> tuple[Any, dict[str, Tensor]]:
    """A model as it is held, and what was cut off from its weights."""
    model = load_model(folder, device=forward.device)
    if matmul_precision == "fp8":
        in_eight_bits(model)
    if not holding.is_narrow:
        return model, {}
    rests = narrowed(model, holding)
    if forward.fast_path(model) is None:
        raise ConfigurationError(
            f"bytes_per_weight={holding.total} needs the kernels of the fast path, which {type(model).__name__} has "
            f'none of, or fused="{forward.fused}" does without: use bytes_per_weight={FLOAT32}'
        )
    if torch.device(forward.device).type == "cuda":
        torch.cuda.empty_cache()  # of the wide weights
    return model, rests


def holding_of(trainer: TorchTrainer, folder: Path, room: Room) -> Holding:
    """How weights that learn are held: as the trainer says, or in as many bytes as there is room for."""
    if trainer.bytes_per_weight or not trainer.device.startswith("cuda"):
        return HOLDINGS[trainer.bytes_per_weight or FLOAT32]
    return choose(outline(folder, trainer.matmul_precision), free_bytes(trainer.device) - room.taken, trainer, room)


def choose(model: Any, free: int, trainer: TorchTrainer, room: Room) -> Holding:
    """The first holding with which a model (without memory: its shape counts) fits; where none does, the smallest."""
    count, known = sum(each.numel() for each in model.parameters()), holdings_of(trainer, model)
    for holding in known:
        needed = partial(bytes_needed, model, holding, trainer.chunk, len(known) > 1)
        left = free - count * (holding.weights + room.others * holding.frozen_bytes)
        for way in ways(trainer.checkpointing, trainer.max_tokens, room.longest):
            if peak(needed(*way), room.keys) <= SPARE * left:
                return holding
    return known[-1]


def holdings_of(trainer: TorchTrainer, model: Any) -> list[Holding]:
    """What a model of this shape can be held in, the best first; without the fast path in float32 alone."""
    wants_fast = trainer.fused != "off" and trainer.dtype == "bfloat16"
    return list(HOLDINGS.values()) if wants_fast and has_fast_path(model, torch.bfloat16) else [HOLDINGS[FLOAT32]]


def optimizer_of(
    trainer: TorchTrainer, learning: Mapping[str, Tensor], holding: Holding, rests: Mapping[str, Tensor], seed: int
) -> Optimizer:
    settings = (trainer.betas, trainer.weight_decay, trainer.clip_norm)
    if not holding.is_narrow:
        return Optimizer(learning, *settings)
    return FrugalOptimizer(learning, *settings, rests, holding.moments, seed)


def saved_bytes(folder: Path) -> int:
    """How a checkpoint was held: whoever goes on from it does so too."""
    return int(read_counts(folder, "trainer").get("bytes_per_weight", FLOAT32))
