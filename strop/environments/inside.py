"""The process in which an environment runs when its world is `Apart`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from strop.processes.frames import Frame, Frames
from strop.processes.keeper import has_children
from strop.processes.parts import unpacked
from strop.roles import Environment, World
from strop.types import Observation

_LONGEST_ERROR = 500


def serve(frames: Frames) -> None:
    """Load the world, say so, then play environments one after the other."""
    setup = frames.take()
    try:
        stage = WorldStage(unpacked(setup.arrays["world"]))
    except Exception as error:
        return frames.answer(setup, _failure(error))
    frames.answer(setup, {"ready": True})
    with asyncio.Runner() as runner:
        while True:
            question = frames.take()
            frames.answer(question, runner.run(stage.answer(question)))


class WorldStage:
    """Where one environment at a time stands."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._environment: Environment | None = None

    async def answer(self, question: Frame) -> dict[str, Any]:
        try:
            return await self._answer(question.head["verb"], unpacked(question.arrays["subject"]))
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
