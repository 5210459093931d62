"""Where the answer of a reply stands, for whoever looks at its tokens alone (GRPO-CARE, 2506.16141).

Papers: grpo-care
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.filter.paid_text import Paid, Span
from strop.roles import Reward
from strop.types import Group, Trajectory

NAME = "answer"


@dataclass(frozen=True)
class AnswerPlace(Reward):
    """Pays nothing, and marks what stands behind the working of the last reply; a working without end has no answer."""

    weight: float = 0.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[Paid]:
        return [_marked(attempt) for attempt in group.trajectories]


def _marked(attempt: Trajectory) -> Paid:
    reply = attempt.reply
    is_open = OPEN in reply and CLOSE not in reply
    behind = 0 if CLOSE not in reply else reply.rfind(CLOSE) + len(CLOSE)
    start, end = len(reply) - len(reply[behind:].lstrip()), len(reply.rstrip())
    is_there = start < end and not is_open
    return Paid(0.0, (Span(len(attempt.turns) - 1, start, end, name=NAME),) if is_there else ())
