"""Weights within one process: engines copy the trainer's tensors and prove by fingerprint that they hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.errors import ConfigurationError
from strop.machines import Channel, Engine, Trainer, WeightVersion
from strop.weights.delivery import as_held, deliver
from strop.weights.fingerprint import fingerprint


@dataclass
class Memory(Channel):
    """A version's location is the trainer's tensors, by name; rounded once where engines hold another type."""

    _trainer: Trainer | None = field(default=None, init=False, repr=False, compare=False)
    _engines: tuple[Engine, ...] = field(default=(), init=False, repr=False, compare=False)

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None:
        self._trainer, self._engines = trainer, tuple(engines)

    async def publish(self, step: int) -> WeightVersion:
        """Hand the current weights to every engine; one that answers with other weights stops the run."""
        if self._trainer is None:
            raise ConfigurationError("Memory has no trainer yet: call connect(trainer, engines) first")
        weights = as_held(self._trainer.weights(), self._engines)
        version = WeightVersion(step, fingerprint(weights), weights)
        await deliver(version, self._engines)
        return version
