"""The process in which environments run when their world is `Apart` (one at a time) or `Pooled` (several)."""

from __future__ import annotations

import asyncio
from typing import Any

from strop.capabilities import Demonstrates
from strop.roles import Environment, World
from strop.storage.turn_bytes import plain_message
from strop.types import Observation
from strop.workers.frames import Frame, Frames
from strop.workers.keeper import has_children
from strop.workers.pickled_parts import unpacked

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
    """Where environments stand, by their numbers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._environments: dict[int, Environment] = {}

    async def answer(self, question: Frame) -> dict[str, Any]:
        try:
            verb, number = question.head["verb"], question.head["number"]
            return await self._answer(verb, number, unpacked(question.arrays["subject"]))
        except Exception as error:
            return _failure(error)

    async def _answer(self, verb: str, number: int, subject: Any) -> dict[str, Any]:
        if verb == "reset":
            self._environments[number] = self._world.environment()
            await self._environments[number].reset(subject)
            return {}
        if verb == "step":
            return {"observation": _plain(await self._environments[number].step(subject))}
        if verb == "demonstrate":
            environment = self._environments[number]
            return {"shown": environment.demonstrate().content if isinstance(environment, Demonstrates) else None}
        await self._environments.pop(number).close()
        return {"is_alone": not has_children()}


def _plain(observation: Observation) -> dict[str, Any]:
    reward = None if observation.reward is None else float(observation.reward)
    return {
        "messages": [plain_message(m) for m in observation.messages],
        "done": bool(observation.done),
        "reward": reward,
    }


def _failure(error: Exception) -> dict[str, Any]:
    return {"error": f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]}
