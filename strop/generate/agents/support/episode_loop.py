"""A talk with an environment, turn by turn: what agents do once they have said what they say before."""

from __future__ import annotations

from collections.abc import Sequence

from strop.generate.interfaces import Dialogue
from strop.roles import Episode
from strop.types import Observation


async def acted(
    dialogue: Dialogue, episode: Episode, max_turns: int, before: Sequence[Observation] = ()
) -> list[Observation]:
    """Completion and hear until the environment ends it, the context is full, or `max_turns` are over, `before` among
    them.
    """
    answers = list(before)

    def goes_on() -> bool:
        return len(answers) < max_turns and not (answers and answers[-1].done)

    while goes_on() and not dialogue.is_cut:
        answers.append(await episode.step(await dialogue.completion()))
        if goes_on():
            dialogue.hear(answers[-1].messages)
    return answers


def payments(answers: Sequence[Observation], num_asides: int = 0) -> tuple[float, ...]:
    """What the environment paid for each turn, nothing for what was said aside before; empty where it never pays."""
    if all(answer.reward is None for answer in answers):
        return ()
    return (*[0.0] * num_asides, *(answer.reward or 0.0 for answer in answers))
