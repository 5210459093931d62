"""Weight channel within one process: engines copy the trainer's tensors and return a fingerprint of their copy.

Where only adapters are trained, an engine that is connected before it is opened reads the base weights in place; then
only adapters are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.backends import WeightVersion
from strop.errors import ConfigurationError
from strop.roles import Channel, Engine, Trainer
from strop.weights.delivery import as_held, deliver, shared_to
from strop.weights.fingerprint import fingerprint
from strop.weights.shared_base_weights import Loan


@dataclass
class Memory(Channel):
    """A version's location is the trainer's tensors, by name; rounded once where engines hold another dtype."""

    _shared: Loan | None = field(default=None, init=False, repr=False, compare=False)

    _trainer: Trainer | None = field(default=None, init=False, repr=False, compare=False)
    _engines: tuple[Engine, ...] = field(default=(), init=False, repr=False, compare=False)

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None:
        self._trainer, self._engines = trainer, tuple(engines)
        self._shared = shared_to(trainer, engines)

    async def publish(self, step: int) -> WeightVersion:
        """Hand the current weights to every engine; one that answers with other weights stops the run."""
        if self._trainer is None:
            raise ConfigurationError("Memory has no trainer yet: call connect(trainer, engines) first")
        shared = self._shared
        weights = as_held(self._trainer.weights() if shared is None else shared.adapters, self._engines)
        version = WeightVersion(step, fingerprint(weights) if shared is None else shared.published(weights), weights)
        await deliver(version, self._engines)
        return version
