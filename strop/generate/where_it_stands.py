"""Attempts that were begun: how a new environment comes to where they stand."""

from __future__ import annotations

from strop.generate.partners import Dialogue
from strop.generate.play import WorldFailed
from strop.roles import Environment
from strop.types import Observation, Task


async def where_it_stands(task: Task, dialogue: Dialogue, environment: Environment) -> list[Observation]:
    """Takes the turns that are there already, and lets the dialogue hear what the world says to the last of them."""
    await environment.reset(task)
    answers = list[Observation]()
    for turn in dialogue.turns:
        if answers and answers[-1].done:
            raise WorldFailed(
                f"it ended after {len(answers)} of {len(dialogue.turns)} turns that it had answered before"
            )
        answers.append(await environment.step(turn.message))
    if answers and not answers[-1].done:
        dialogue.hear(answers[-1].messages)
    return answers
