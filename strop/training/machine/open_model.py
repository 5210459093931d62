"""Opening of a trainer's model, full weights or adapters over frozen ones, and the state of an open trainer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from strop.models.layers.eight_bit_linear import in_eight_bits
from strop.models.model import load_model
from strop.models.optimizers.adamw import Optimizer
from strop.models.optimizers.low_memory_adamw import FLOAT32, HOLDINGS, Holding
from strop.training.machine.ema_policy import Average
from strop.training.machine.forward import Forward
from strop.training.machine.full_weights import holding_of, open_whole, optimizer_of, saved_bytes
from strop.training.machine.lora import learning, load_adapters, open_adapted
from strop.training.machine.masked_views import reading_of
from strop.training.machine.old_logprobs import Snapshots
from strop.training.machine.old_policies import Earlier
from strop.training.machine.step_totals import StepSum
from strop.training.machine.thread_parallel import LARGEST, AtOnce

if TYPE_CHECKING:
    from strop.training.trainers.torch import TorchTrainer


@dataclass(eq=False)
class Opened:
    """Model, forward pass and optimizer of an open trainer."""

    model: Any
    forward: Forward
    earlier: Earlier
    optimizer: Optimizer
    source: Path  # where training began: the tokenizer, and the reference unless another is named
    seed: int
    holding: Holding
    at_once: AtOnce
    frozen: dict[str, Any] = field(default_factory=dict)  # models that never move, by the name of their policy
    sum: StepSum | None = None  # what will be the next step
    is_settled: bool = False

    @property
    def facts(self) -> dict[str, int]:
        """What a checkpoint says of it."""
        return {"seed": self.seed} | ({"bytes_per_weight": self.holding.total} if self.holding.is_narrow else {})


def open_trainer(trainer: TorchTrainer, folder: Path, source: Path, seed: int, before: Any = None) -> Opened:
    """From where training began, or from a checkpoint in another folder.

    A model with adapters stays the one it was `before`: an engine may be reading its weights.
    """
    reading = reading_of(trainer.view, source, seed)
    is_checkpointed = trainer.checkpointing == "on"
    forward = Forward(trainer.device, trainer.dtype, trainer.chunk, trainer.fused, is_checkpointed, reading)
    forward.pictures = None if trainer.store is None else trainer.store.reader(source)
    holding, rests = HOLDINGS[FLOAT32], dict[str, Tensor]()
    if not trainer.lora:
        holding = HOLDINGS[saved_bytes(folder)] if folder != source else holding_of(trainer, folder, trainer.room)
        model, rests = open_whole(folder, holding, forward, trainer.matmul_precision)
        if trainer.tower == "trained":
            model.requires_grad_(True)
    else:
        borrowed = trainer.borrowed.another() if trainer.borrowed is not None else None
        model = before or borrowed or open_adapted(source, trainer.lora, seed, forward, trainer.base)
        if folder != source:
            load_adapters(model, folder)
    optimizer = optimizer_of(trainer, learning(model), holding, rests, seed)
    load = partial(load_frozen, Path(source), holding.frozen, trainer.device, trainer.matmul_precision)
    earlier = Earlier(forward, Snapshots(trainer.snapshots), Average(trainer.average_window), load)
    at_once = AtOnce(not holding.is_narrow and _may_at_once(trainer, model, forward))  # narrow ones are added in turn
    return Opened(model, forward, earlier, optimizer, Path(source), seed, holding, at_once)


def _may_at_once(trainer: TorchTrainer, model: Any, forward: Forward) -> bool:
    """Where threads share no scratch and policy statistic nothing in the order in which they come, and gradients are
    small.
    """
    is_plain = trainer.device == "cpu" and not trainer.lora and trainer.step_scale is None
    is_small = sum(each.numel() for each in model.parameters()) <= LARGEST
    return is_plain and is_small and forward.fast_path(model) is not None


def load_frozen(folder: Path, dtype: torch.dtype, device: str, matmul_precision: str) -> Any:
    """A model that does not learn; the reference and earlier weights multiply as the ones that do."""
    model = load_model(folder, dtype, device).requires_grad_(False)
    if matmul_precision == "fp8":
        in_eight_bits(model)
    return model
