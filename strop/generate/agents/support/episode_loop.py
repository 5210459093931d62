"""Loop of an agent over the turns of an episode: from its start, after a replay, with messages of peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.generate.rollout import EnvironmentFailed
from strop.roles import Dialogue, Episode
from strop.text.sanitize import quoted
from strop.types import Message, Observation, Task

# A talk with an environment, turn by turn: what agents do once they have said what they say before.


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


# Rollouts that were begun: how a new episode comes to where they stand.


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


# A question with what others said about it behind: how roles of one rollout hear of each other.


def told_by_others(task: Task, said: Sequence[str], asks: str = "{question} hint: {said}") -> tuple[Message, ...]:
    """The task's messages; the last one is asked as `asks` says, where anything was said."""
    words = " ".join(quoted(each.replace(OPEN, " ").replace(CLOSE, " ")).strip() for each in said)
    if not words:
        return task.messages
    *before, question = task.messages
    return (*before, replace(question, content=asks.format(question=question.content, said=words)))
