"""How attempts are reflected upon: what is asked of an adviser, or of the policy itself, and how a trace is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strop.control.requests import asked
from strop.environments.questions import question
from strop.errors import AdviserError
from strop.filter.frames import frames
from strop.roles import Adviser
from strop.types import Trajectory

if TYPE_CHECKING:
    from strop.generate.partners import Player

_SILENT = " Never say an answer."
REFLECTIONS: Mapping[str, str] = {
    "insight": "The reply to the task failed; the other one was right, there or at a similar task. Say in one short "
    "sentence what to do differently at tasks like these." + _SILENT,
}


async def reflected(adviser: Adviser | None, wanted: str, play: Player, **parts: str) -> str:
    """What was said; nothing where whoever was asked did not answer: a lesson is lost, and no attempt."""
    try:
        return await asked(adviser, question(REFLECTIONS[wanted], wanted=wanted, **parts), play)
    except AdviserError:
        return ""


def trace(attempt: Trajectory, longest: int = 2000) -> str:
    """An attempt as text, a line per turn; the end of one that is too long."""
    return "\n".join(frames(attempt))[-longest:]
