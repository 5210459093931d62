"""Play one attempt from start to outcome: the one place where a world's failure becomes data.

Only calls of the environment are guarded, and each has a deadline. A world that blocks the event loop or crashes its
process cannot be helped from here: `environments/apart.py` gives it a process of its own. Whatever else raises (an
engine, a wrong configuration, our own code) stops the run, and a cancelled attempt stays cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from strop.errors import ConfigurationError, StropError
from strop.generate.policy import Policy, Talk
from strop.killable.process import NoAnswer
from strop.observe.stages import Stages
from strop.roles import Agent, Demonstrates, Environment, World
from strop.types import Message, Observation, Origin, Outcome, Start, Stop, Task, Trajectory

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_LONGEST_ERROR = 500


class WorldFailed(Exception):  # noqa: N818 (it says what happened; it is never shown as an error)
    """An environment raised; the cause is its exception."""


@dataclass
class Guarded:
    """An environment whose exceptions cannot be taken for anybody else's, and that answers within `seconds`."""

    inner: Environment
    attempt: str = ""
    seconds: float = 60.0
    stages: Stages = field(default_factory=Stages)
    is_open: bool = False  # the world's last word was that it goes on

    async def reset(self, task: Task) -> None:
        await self._guard(self.inner.reset, task)

    async def step(self, reply: Message) -> Observation:
        observation = await self._guard(self.inner.step, reply)
        self.is_open = not observation.done
        return observation

    async def close(self) -> None:
        await self._guard(self.inner.close)

    def demonstrate(self) -> Message:
        if not isinstance(self.inner, Demonstrates):
            raise ConfigurationError(f"{type(self.inner).__name__} has no demonstrate(), so nothing can be shown in it")
        try:
            return self.inner.demonstrate()
        except Exception as error:
            raise WorldFailed(describe(error)) from error

    async def _guard(
        self, work: Callable[Arguments, Awaitable[Result]], *args: Arguments.args, **more: Arguments.kwargs
    ) -> Result:
        self.stages.enter(f"attempt {self.attempt}", "its world")
        deadline = asyncio.timeout(self.seconds)
        try:
            async with deadline:
                return await work(*args, **more)
        except StropError:
            raise
        except Exception as error:
            reason = f"no answer within {self.seconds:g} s" if deadline.expired() else describe(error)
            raise WorldFailed(reason) from error
        finally:
            self.stages.leave(f"attempt {self.attempt}")


def describe(error: BaseException) -> str:
    """An exception's type and message; a process of its own says itself what was wrong."""
    told = str(error) if isinstance(error, NoAnswer) else f"{type(error).__name__}: {error}"
    return told[:_LONGEST_ERROR]


async def play(
    agent: Agent,
    policy: Policy,
    world: World,
    task: Task,
    start: Start,
    seconds: float = 60.0,
    stages: Stages | None = None,
) -> Trajectory:
    """One attempt; what the world broke or did not answer in time comes back as FAILED, with the turns so far."""
    dialogue = policy.dialogue(task, start)
    origin = agent.origin if start.origin is Origin.POLICY else start.origin
    try:
        environment = Guarded(_build(world), start.id, seconds, stages or Stages())
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
