"""Value models with a network of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import ValueModel
from strop.training.machine.value_body import Part, ValueBody
from strop.types import Group, Metrics, Rollout


@dataclass
class Bodied(ValueModel):
    """Value model with a network that is saved in checkpoints; a subclass predicts and learns."""

    learning_rate: float = 1e-4  # of Adam
    max_tokens: int = 4096  # of one micro-batch
    device: str = "cpu"  # cpu or cuda
    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)

    _name: ClassVar[str]  # of its files in a checkpoint

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, 1, self.max_tokens, self.device)

    def save(self, folder: Path) -> None:
        self._ready().save(folder, self._name)

    def resume(self, folder: Path) -> None:
        self._ready().resume(folder, self._name)

    def _outputs(self, groups: Sequence[Group]) -> Iterator[tuple[Rollout, NDArray[np.float32]]]:
        """Outputs of the network for every scored rollout: [N, 2, 1], before and after each of its tokens."""
        rollouts = [rollout for group in groups for rollout in group.scored]
        found = self._ready().told(rollouts)
        for rollout in rollouts:
            yield rollout, found.get(rollout.id, np.zeros((0, 2, 1), dtype=np.float32))

    def _fit(self, loss: Callable[[Tensor, Part], Tensor], parts: Sequence[Part], steps: int) -> Metrics:
        """So many steps on the sum of a loss over the parts of a batch."""
        norms = [self._ready().step(parts, loss, self.learning_rate) for _ in range(steps if parts else 0)]
        return {"value_grad_norm": norms[-1]} if norms else {}

    def _ready(self) -> ValueBody:
        if self._body is None:
            raise ConfigurationError(f"{type(self).__name__} has no model yet: call open(model, seed) first")
        return self._body
