"""State of a trainer while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strop.models.optimizers.adamw import Optimizer
from strop.models.optimizers.low_memory_adamw import Holding
from strop.training.machine.forward import Forward
from strop.training.machine.old_policies import Earlier
from strop.training.machine.step_totals import StepSum
from strop.training.machine.thread_parallel import AtOnce


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
