"""Play one attempt from start to outcome: the one place where a world's failure becomes data.

Only calls of the environment are guarded. Whatever else raises (an engine, a wrong configuration, our own code) stops
the run, and a cancelled attempt stays cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from strop.errors import ConfigurationError, StropError
from strop.generate.policy import Policy, Talk
from strop.roles import Agent, Demonstrates, Environment, World
from strop.types import Message, Observation, Origin, Outcome, Start, Stop, Task, Trajectory

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_LONGEST_ERROR = 500


class WorldFailed(Exception):  # noqa: N818 (it says what happened; it is never shown as an error)
    """An environment raised; the cause is its exception."""


@dataclass
class Guarded:
    """An environment whose exceptions cannot be taken for anybody else's."""

    inner: Environment
    is_open: bool = False  # the world's last word was that it goes on

    async def reset(self, task: Task) -> None:
        await _guard(self.inner.reset, task)

    async def step(self, reply: Message) -> Observation:
        observation = await _guard(self.inner.step, reply)
        self.is_open = not observation.done
        return observation

    async def close(self) -> None:
        await _guard(self.inner.close)

    def demonstrate(self) -> Message:
        if not isinstance(self.inner, Demonstrates):
            raise ConfigurationError(f"{type(self.inner).__name__} has no demonstrate(), so nothing can be shown in it")
        try:
            return self.inner.demonstrate()
        except Exception as error:
            raise WorldFailed(describe(error)) from error


async def _guard(
    work: Callable[Arguments, Awaitable[Result]], *args: Arguments.args, **more: Arguments.kwargs
) -> Result:
    try:
        return await work(*args, **more)
    except StropError:
        raise
    except Exception as error:
        raise WorldFailed(describe(error)) from error


def describe(error: BaseException) -> str:
    """An exception's type and message."""
    return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]


async def play(agent: Agent, policy: Policy, world: World, task: Task, start: Start) -> Trajectory:
    """One attempt; what the world broke comes back as FAILED, with the turns so far."""
    dialogue = policy.dialogue(task, start)
    origin = agent.origin if start.origin is Origin.POLICY else start.origin
    try:
        environment = Guarded(_build(world))
        paid = await _attempt(agent, task, dialogue, environment)
    except WorldFailed as failure:
        return Trajectory(
            start.id, task, dialogue.turns, Outcome.FAILED, origin, error=f"world {world.name}: {failure}"
        )
    outcome = _outcome(dialogue, environment)
    return Trajectory(start.id, task, dialogue.turns, outcome, origin, turn_rewards=paid)


def _build(world: World) -> Environment:
    try:
        return world.environment()
    except StropError:
        raise
    except Exception as error:
        raise WorldFailed(describe(error)) from error


async def _attempt(agent: Agent, task: Task, dialogue: Talk, environment: Guarded) -> tuple[float, ...]:
    try:
        paid = await agent.attempt(task, dialogue, environment)
    except BaseException:
        # the first failure is the one to tell, and a cancellation must not be replaced by one of close()
        with suppress(WorldFailed):
            await environment.close()
        raise
    await environment.close()
    return paid


def _outcome(dialogue: Talk, environment: Guarded) -> Outcome:
    if dialogue.stop is Stop.ABORTED:
        return Outcome.PRUNED
    # not is_cut: a last reply that ends exactly where the context does is finished
    is_ended = dialogue.stop is Stop.STOP and not environment.is_open
    return Outcome.FINISHED if is_ended else Outcome.TRUNCATED
