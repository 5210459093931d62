"""WebRL's curriculum (2411.02337): tasks that nobody solved are the seeds of new ones.

Which of those are within reach is the critic's to say: `WithWritten(band=...)` asks the run's belief before a draw.
Papers: webrl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strop.control.task_generators.support.prompts import rewritten
from strop.errors import ConfigurationError
from strop.roles import Adviser, Writer
from strop.success import successes
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player

_WANTED = ("similar", "easier")


@dataclass(frozen=True)
class FromFailed(Writer):
    """`tasks` new ones from each task that no attempt solved: as hard as it, or with a step less."""

    adviser: Adviser | None = None  # who writes; None: the policy itself
    tasks: int = 2  # that follow from one failure

    def __post_init__(self) -> None:
        if self.tasks < 1:
            raise ConfigurationError(f"FromFailed needs tasks >= 1, got {self.tasks}")

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        right, count = successes(group)
        if not count or right > 0:
            return []
        streams = [np.random.default_rng(play.another().key) for _ in range(self.tasks)]
        wanted = [_WANTED[int(stream.integers(len(_WANTED)))] for stream in streams]
        return [await rewritten(self.adviser, each, group.task, play) for each in wanted]
