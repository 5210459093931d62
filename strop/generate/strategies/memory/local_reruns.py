"""Memory-R2's local attempts (2605.21768): some sessions are tried again from one attempt's memory, and compared there.

Papers: memory-r2
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from strop.concurrency import together
from strop.environments.bundled.sessions import carried, num_sessions, one_session, split_message
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.roles import Strategy
from strop.types import Group, Origin, Start, Task, Trajectory

_TURNS = 2  # of a session: extractor and manager


@dataclass(frozen=True)
class LocalReruns(Strategy):
    """Each session with probability `share`: `count` attempts at it alone, from the memory with which one of the whole
    attempts, drawn by chance, began it. They are a family of their own, and their memory is nobody else's.
    """

    inner: Strategy
    share: float = 0.25  # of sessions that are tried again
    count: int = 4  # attempts at each

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.count < 2:
            raise ConfigurationError(
                f"LocalReruns needs 0 <= share <= 1 and count >= 2, got {self.share}, {self.count}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        whole = await self.inner(group, starts, play)
        stream = random.Random(f"{starts[0].key}/local")
        local: list[tuple[Start, Task]] = []
        for number in range(num_sessions(group.task)):
            began = [attempt for attempt in whole if attempt.is_scored and len(attempt.turns) >= _TURNS * number]
            if stream.random() >= self.share or not began:
                continue
            task = one_session(group.task, number, memory_before(stream.choice(began), number))
            family = {"family": f"session {number}", "origin": Origin.BRANCHED}
            local += [(play.another(**family), task) for _ in range(self.count)]
        again = await together(play(start, task=task) for start, task in local)
        for attempt in again:
            attempt.facts["local"] = 1.0
        return [*whole, *again]


def memory_before(attempt: Trajectory, number: int) -> str:
    """The memory with which an attempt began a session."""
    if number == 0:
        return split_message(attempt.task.messages[-1].content)[0]
    return carried(attempt.turns[_TURNS * number - 1].message.content)
