"""Rollouts that were begun: how a new episode comes to where they stand."""

from __future__ import annotations

from strop.generate.interfaces import Dialogue
from strop.generate.rollout import EnvironmentFailed
from strop.roles import Episode
from strop.types import Observation, Task


async def where_it_stands(
    task: Task, dialogue: Dialogue, episode: Episode, must_go_on: bool = False
) -> list[Observation]:
    """Takes the turns that are there already, and lets the dialogue hear what the environment says to the last of them.

    An environment that ends before that, or there though it `must_go_on`, is not the one in which these turns were
    taken.
    """
    await episode.reset(task)
    answers, turns = list[Observation](), dialogue.turns
    for turn in turns:
        answers.append(await episode.step(turn.message))
        if answers[-1].done and (must_go_on or len(answers) < len(turns)):
            raise EnvironmentFailed(
                f"it ended after {len(answers)} of {len(turns)} turns after which it had gone on before"
            )
    if answers and not answers[-1].done:
        dialogue.hear(answers[-1].messages)
    return answers
