"""An environment whose hints are about another of its tasks: what a hint is worth without its task, for negative
controls.
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.capabilities import Hints
from strop.environments.data.lookup import other_task
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.types import Task


@dataclass(frozen=True)
class Misguided(Around):
    """The environment as it is; a hint shows how the working of another train task begins, the same one every time."""

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Hints):
            raise ConfigurationError(f"Misguided needs an environment with hints, and {self.inner.name} gives none")

    def hint(self, task: Task, steps: int = 1) -> str:
        assert isinstance(self.inner, Hints)
        return self.inner.hint(other_task((self.inner,), task), steps)
