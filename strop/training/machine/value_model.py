"""Value models with a network of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import ValueModel
from strop.training.machine.value_body import ValueBody


@dataclass
class Bodied(ValueModel):
    """Value model whose network is opened by a subclass and saved in checkpoints."""

    _body: ValueBody | None = field(default=None, init=False, repr=False, compare=False)

    _name: ClassVar[str]  # of its files in a checkpoint

    def save(self, folder: Path) -> None:
        self._ready().save(folder, self._name)

    def resume(self, folder: Path) -> None:
        self._ready().resume(folder, self._name)

    def _ready(self) -> ValueBody:
        if self._body is None:
            raise ConfigurationError(f"{type(self).__name__} has no model yet: call open(model, seed) first")
        return self._body
