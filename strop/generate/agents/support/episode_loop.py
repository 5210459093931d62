"""Turn loop of an episode: from the start, after replayed turns, or after messages of other roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.generate.rollout import EnvironmentFailed
from strop.roles import Dialogue, Episode
from strop.text.sanitize import quoted
from strop.types import Message, Observation, Task


async def acted(
    dialogue: Dialogue, episode: Episode, max_turns: int, before: Sequence[Observation] = ()
) -> list[Observation]:
    """Alternate completions and answers until the environment ends the episode, the context is full, or there were
    `max_turns` turns, those of `before` included.
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
    """Reward of each turn, with 0 for side conversations before; empty if the environment never pays."""
    if all(answer.reward is None for answer in answers):
        return ()
    return (*[0.0] * num_asides, *(answer.reward or 0.0 for answer in answers))


# Rollouts with earlier turns: replay of these turns in a new episode.


async def where_it_stands(
    task: Task, dialogue: Dialogue, episode: Episode, must_go_on: bool = False
) -> list[Observation]:
    """Replay the turns that exist already; the dialogue then reads the environment's answer to the last of them.

    An environment that ends earlier, or at the last turn with `must_go_on`, is not the one of these turns: an error.
    """
    await episode.reset(task)
    answers, turns = list[Observation](), dialogue.turns
    for turn in turns:
        answers.append(await episode.step(turn.message))
        if answers[-1].done and (must_go_on or len(answers) < len(turns)):
            raise EnvironmentFailed(
                f"it ended after {len(answers)} of {len(turns)} replayed turns, where it had continued before"
            )
    if answers and not answers[-1].done:
        dialogue.hear(answers[-1].messages)
    return answers


# Messages of other roles after the question.


def told_by_others(task: Task, said: Sequence[str], asks: str = "{question} hint: {said}") -> tuple[Message, ...]:
    """The task's messages; if others have spoken, the last one is formatted by `asks`."""
    words = " ".join(quoted(each.replace(OPEN, " ").replace(CLOSE, " ")).strip() for each in said)
    if not words:
        return task.messages
    *before, question = task.messages
    return (*before, replace(question, content=asks.format(question=question.content, said=words)))
