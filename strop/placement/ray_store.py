"""Weight channel through the object store of a Ray cluster: written once for all actors, which share memory on each
node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strop.backends import WeightVersion
from strop.errors import ConfigurationError
from strop.placement.hosted import as_bytes
from strop.placement.ray_cluster import ray_package
from strop.roles import Channel, Engine, Trainer
from strop.weights.delivery import as_held, deliver
from strop.weights.fingerprint import fingerprint


@dataclass
class ObjectStore(Channel):
    """Channel that stores a version's weights once."""

    _trainer: Trainer | None = field(default=None, init=False, repr=False, compare=False)
    _engines: tuple[Engine, ...] = field(default=(), init=False, repr=False, compare=False)

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None:
        self._trainer, self._engines = trainer, tuple(engines)

    async def publish(self, step: int) -> WeightVersion:
        """Store the current weights and have every engine prove that it holds them."""
        if self._trainer is None:
            raise ConfigurationError("ObjectStore has no trainer yet: call connect(trainer, engines) first")
        weights = as_held(self._trainer.weights(), self._engines)
        version = WeightVersion(step, fingerprint(weights), stored(weights))
        await deliver(version, self._engines)
        return version


def stored(location: Any) -> Any:
    """A reference to weights in the object store; a folder, or what is there already, stays as it is."""
    ray = ray_package()
    if isinstance(location, str | Path | ray.ObjectRef):
        return location
    if not isinstance(location, Mapping):
        raise ConfigurationError(f"weights must be a folder or tensors by name, got {type(location).__name__}")
    return ray.put(as_bytes(location))
