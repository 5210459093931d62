"""One episode in an environment in which every completion is a text that somebody else wrote."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from strop.capabilities import Demonstrates
from strop.environments.isolation.subprocess import InsideApart
from strop.generate.rollout import Guarded, WorldFailed, describe
from strop.roles import Environment, World
from strop.types import IntArray, Message, Outcome, Task, Trajectory, Turn

PATIENCE = 60.0  # seconds for what is not attacked
_TURNS = 8  # in which a completion is said again, where the environment goes on


async def said(world: World, task: Task, text: str, seconds: float = PATIENCE) -> Trajectory:
    """A rollout that says this and nothing else."""

    async def say(environment: Environment) -> Message:
        return Message("assistant", text)

    return await _played(world, task, say, seconds)


async def shown(world: World, task: Task, seconds: float = PATIENCE) -> Trajectory:
    """A rollout that is right, as far as the environment or its task says what is."""

    async def say(environment: Environment) -> Message:
        if isinstance(environment, Demonstrates):
            return environment.demonstrate()
        told = await environment.shown() if isinstance(environment, InsideApart) else None
        return Message("assistant", task.answer if told is None else told)

    return await _played(world, task, say, seconds)


async def _played(
    world: World, task: Task, say: Callable[[Environment], Awaitable[Message]], seconds: float
) -> Trajectory:
    """A rollout in which `say` answers every time, until the environment ends it or it has said enough."""
    turns, paid, outcome, error = list[Turn](), list[float](), Outcome.FINISHED, ""
    environment = Guarded(inner := world.environment(), seconds=PATIENCE)
    try:
        await environment.reset(task)  # where a process may have to start first
        environment.seconds = seconds
        while len(turns) < _TURNS:
            message = await _told(say, inner)
            answer = await environment.step(message)
            turns.append(_turn(message))
            paid += [] if answer.reward is None else [answer.reward]
            if answer.done:
                break
        await environment.close()
    except WorldFailed as failure:
        outcome, error = Outcome.FAILED, f"world {world.name}: {failure}"
    return Trajectory("attempt", task, tuple(turns), outcome, error=error, turn_rewards=tuple(paid))


async def _told(say: Callable[[Environment], Awaitable[Message]], environment: Environment) -> Message:
    try:
        return await say(environment)
    except Exception as error:
        raise WorldFailed(f"cannot show what is right: {describe(error)}") from error


def places(tokens: IntArray) -> IntArray:
    """Where the characters of a completion end, with a token for each."""
    return np.minimum(np.arange(1, len(tokens) + 1), len(tokens) - 1)


def _turn(message: Message) -> Turn:
    """A token for each character and one for the end: whoever pays places finds them."""
    count = len(message.content) + 1
    tokens, nothing = np.zeros(count, np.int64), np.zeros(0, np.int64)
    return Turn(nothing, tokens, np.zeros(count, np.float32), tokens, message)
