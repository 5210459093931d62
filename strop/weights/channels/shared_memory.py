"""Weight channel for processes of one machine: shared memory, written once per version and mapped by every engine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.backends import WeightVersion
from strop.errors import ConfigurationError
from strop.roles import Channel, Engine, Trainer
from strop.weights.delivery import as_held, deliver
from strop.weights.fingerprint import fingerprint
from strop.weights.mapped_memory import Alternating

_PASSES = 4  # of the event loop, until engines behind others have been asked too: whoever samples next comes after them


@dataclass
class SharedMemory(Channel):
    """A version's location is one of two alternating shared buffers, so that the newest version is always complete.

    Training goes on once a version is written and every engine has been asked to load it; `proven` waits for their
    answers. A buffer is reused only after every engine has proven that it holds a later version.
    """

    _trainer: Trainer | None = field(default=None, init=False, repr=False, compare=False)
    _engines: tuple[Engine, ...] = field(default=(), init=False, repr=False, compare=False)
    _delivery: asyncio.Task[None] | None = field(default=None, init=False, repr=False, compare=False)
    _buffers: Alternating = field(default_factory=Alternating, init=False, repr=False, compare=False)

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None:
        self._trainer, self._engines = trainer, tuple(engines)

    async def publish(self, step: int) -> WeightVersion:
        """Write the current weights and ask every engine to prove that it holds them."""
        if self._trainer is None:
            raise ConfigurationError("SharedMemory has no trainer yet: call connect(trainer, engines) first")
        weights = as_held(self._trainer.weights(), self._engines)
        await self.proven()
        version = WeightVersion(step, fingerprint(weights), self._buffers.write(weights))
        self._delivery = asyncio.create_task(deliver(version, self._engines))
        self._delivery.add_done_callback(lambda done: done.cancelled() or done.exception())  # told by `proven`
        for _ in range(_PASSES):
            await asyncio.sleep(0)
        return version

    async def proven(self) -> None:
        """Return when every engine holds what was published last; one that answers with other weights stops the run."""
        if self._delivery is not None:
            await asyncio.shield(self._delivery)
