"""Environment whose completions are untrusted text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from strop.capabilities import Demonstrates
from strop.environments.isolation.subprocess import InsideApart
from strop.environments.single_turn import Solves
from strop.generate.rollout import EnvironmentFailed, Guarded, describe
from strop.roles import Environment, Episode
from strop.types import IntArray, Message, Outcome, Rollout, Task, Turn

PATIENCE = 60.0  # seconds for what is not attacked
_TURNS = 8  # in which a completion is said again, where the episode goes on


async def said(env: Environment, task: Task, text: str, seconds: float = PATIENCE) -> Rollout:
    """A rollout that says this and nothing else."""

    async def say(episode: Episode) -> Message:
        return Message("assistant", text)

    return await _played(env, task, say, seconds)


async def shown(env: Environment, task: Task, seconds: float = PATIENCE) -> Rollout:
    """A rollout that is right, as far as the episode or its task says what is."""

    async def say(episode: Episode) -> Message:
        if isinstance(episode, Demonstrates):
            return episode.demonstrate()
        told = await episode.shown() if isinstance(episode, InsideApart) else None
        right = env.solution(task) if isinstance(env, Solves) else task.answer
        return Message("assistant", right if told is None else told)

    return await _played(env, task, say, seconds)


async def _played(
    env: Environment, task: Task, say: Callable[[Episode], Awaitable[Message]], seconds: float
) -> Rollout:
    """A rollout in which `say` answers every time, until the episode ends it or it has said enough."""
    turns, paid, outcome, error = list[Turn](), list[float](), Outcome.FINISHED, ""
    episode = Guarded(inner := env.episode(), seconds=PATIENCE)
    try:
        await episode.reset(task)  # where a process may have to start first
        episode.seconds = seconds
        while len(turns) < _TURNS:
            message = await _told(say, inner)
            answer = await episode.step(message)
            turns.append(_turn(message))
            paid += [] if answer.reward is None else [answer.reward]
            if answer.done:
                break
        await episode.close()
    except EnvironmentFailed as failure:
        outcome, error = Outcome.FAILED, f"environment {env.name}: {failure}"
    return Rollout("rollout", task, tuple(turns), outcome, error=error, turn_rewards=tuple(paid))


async def _told(say: Callable[[Episode], Awaitable[Message]], episode: Episode) -> Message:
    try:
        return await say(episode)
    except Exception as error:
        raise EnvironmentFailed(f"cannot show what is right: {describe(error)}") from error


def places(tokens: IntArray) -> IntArray:
    """Where the characters of a completion end, with a token for each."""
    return np.minimum(np.arange(1, len(tokens) + 1), len(tokens) - 1)


def _turn(message: Message) -> Turn:
    """A token for each character and one for the end: whoever pays places finds them."""
    count = len(message.content) + 1
    tokens, nothing = np.zeros(count, np.int64), np.zeros(0, np.int64)
    return Turn(nothing, tokens, np.zeros(count, np.float32), tokens, message)
