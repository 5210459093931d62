"""The process in which an environment runs when its world is `Apart`; see `killable/pipes.py` for how it is asked."""

from __future__ import annotations

import asyncio
import pickle
import sys
from dataclasses import asdict
from typing import Any

from strop.filter.keeper import fork_kept, has_children
from strop.killable.pipes import Pipes
from strop.processes.limits import limit_memory
from strop.roles import Environment, World
from strop.types import Observation

_LONGEST_ERROR = 500


def main() -> None:
    """Load the world, say so, then play environments one after the other until stdin ends."""
    fork_kept()
    limit_memory()
    pipes = Pipes.take()
    setup = pipes.read()
    if setup is None:
        return
    sys.path[:] = setup["path"]
    try:
        world: World = pickle.loads(setup["world"])
    except Exception as error:
        return pipes.answer(_failure(error))
    pipes.answer({"ready": True})
    stage = Stage(world)
    with asyncio.Runner() as runner:
        while (request := pipes.read()) is not None:
            pipes.answer(runner.run(stage.answer(*request)))


class Stage:
    """Where one environment at a time stands."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._environment: Environment | None = None

    async def answer(self, verb: str, subject: Any) -> dict[str, Any]:
        try:
            return await self._answer(verb, subject)
        except Exception as error:
            return _failure(error)

    async def _answer(self, verb: str, subject: Any) -> dict[str, Any]:
        if verb == "reset":
            self._environment = self._world.environment()
            await self._environment.reset(subject)
            return {}
        assert self._environment is not None
        if verb == "step":
            return {"observation": _plain(await self._environment.step(subject))}
        await self._environment.close()
        self._environment = None
        return {"is_alone": not has_children()}


def _plain(observation: Observation) -> dict[str, Any]:
    reward = None if observation.reward is None else float(observation.reward)
    return {"messages": [asdict(m) for m in observation.messages], "done": bool(observation.done), "reward": reward}


def _failure(error: Exception) -> dict[str, Any]:
    return {"error": f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]}


if __name__ == "__main__":
    main()
