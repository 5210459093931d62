"""OpenClaw-RL's scalar signal (2603.10165): what was said after a reply is judged, and that is the reply's reward.

Papers: openclaw-rl
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of
from strop.filter.next_states import asked, majority, next_states, score_in
from strop.filter.paid_text import Paid, Span
from strop.roles import Adviser, Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class NextStateVotes(Reward):
    """-1, 0 or 1 at the end of each reply that was answered: what most of the judge's `votes` say, 0 in a tie."""

    judge: Adviser
    votes: int = 3  # asked for each reply
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits for its judge
    name: ClassVar[str] = "next_state"

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise ConfigurationError(f"NextStateVotes needs votes >= 1, got {self.votes}")

    def __call__(self, group: Group) -> Awaitable[Sequence[Paid]]:
        return self._paid(group)

    async def _paid(self, group: Group) -> list[Paid]:
        return [Paid(0.0, tuple(await self._spans(attempt))) for attempt in group.trajectories]

    async def _spans(self, attempt: Trajectory) -> list[Span]:
        found = []
        for number, state in enumerate(next_states(attempt)):
            if state and len(attempt.turns[number].whole):
                said = await all_of(asked(self.judge, "verdict", attempt, number, vote) for vote in range(self.votes))
                value = majority([score_in(each) for each in said])
                found.append(Span(number, 0, len(attempt.turns[number].message.content), value, name="answered"))
        return found
