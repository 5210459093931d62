"""A judge who reads the response and not the thought before it (RLMT, 2509.20357): thinking is paid by what it is for.

Readings: the response is what stands behind the first </think>; the paper has tags of its own around it. In the strict
form, the one for models that were taught the layout, a reply that is not laid out so is shown as "[NULL]"; otherwise
the judge reads all of it, thought included.
Papers: rlmt
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.roles import Reward
from strop.types import Group, Metrics, Trajectory, Turn

NOTHING = "[NULL]"


@dataclass(frozen=True)
class ThoughtBlind(Reward):
    """What `inner` says of attempts whose thoughts were cut out of every reply."""

    inner: Reward
    strict: bool = True  # or a reply without the layout is shown as it is
    weight: float = 1.0

    name: ClassVar[str] = "thought_blind"

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> Sequence[float | Paid] | Awaitable[Sequence[float | Paid]]:
        told = self.inner(replace(group, trajectories=[self._blind(attempt) for attempt in group.trajectories]))
        return self._waited(told) if isinstance(told, Awaitable) else self._plain(told)

    async def _waited(self, told: Awaitable[Sequence[float | Paid]]) -> Sequence[float | Paid]:
        return self._plain(await told)

    def _plain(self, told: Sequence[float | Paid]) -> Sequence[float | Paid]:
        if any(isinstance(mark, Paid) and mark.spans for mark in told):
            raise ConfigurationError(f"{type(self.inner).__name__} pays places of a text that the policy did not write")
        return told

    def _blind(self, attempt: Trajectory) -> Trajectory:
        return replace(attempt, turns=tuple(self._shown(turn) for turn in attempt.turns))

    def _shown(self, turn: Turn) -> Turn:
        response = response_of(turn.message.content)
        if response is None and self.strict:
            response = NOTHING
        return turn if response is None else replace(turn, message=replace(turn.message, content=response))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Shares of replies without the layout, and of all letters that were hidden; nothing is remembered."""
        replies = [t.message.content for group in groups for attempt in group.scored for t in attempt.turns]
        responses = [response_of(reply) for reply in replies]
        shown = sum(
            len(reply if response is None else response) for reply, response in zip(replies, responses, strict=True)
        )
        return {
            "malformed_share": sum(response is None for response in responses) / max(len(replies), 1),
            "hidden_share": 1 - shown / max(sum(map(len, replies)), 1),
        }


def response_of(reply: str) -> str | None:
    """What stands behind the first thought; None where a reply does not begin with one, or nothing follows it."""
    thought, closed, response = reply.partition(CLOSE)
    is_laid_out = thought.lstrip().startswith(OPEN) and closed and response.strip()
    return response.strip() if is_laid_out else None
