"""Worker process for the episodes of `Apart` (one at a time) and `Pooled` (several)."""

from __future__ import annotations

import asyncio
from typing import Any

from strop.capabilities import Demonstrates
from strop.roles import Environment, Episode
from strop.storage.ledger.turn_bytes import plain_message
from strop.storage.picture_store import uri_of
from strop.types import Message, Observation
from strop.workers.frames import Frame, Frames
from strop.workers.keeper import has_children
from strop.workers.pickled_parts import unpacked

_LONGEST_ERROR = 500


def serve(frames: Frames) -> None:
    """Load the environment, say so, then play episodes one after the other."""
    setup = frames.take()
    try:
        stage = EnvironmentStage(unpacked(setup.arrays["env"]))
    except Exception as error:
        return frames.answer(setup, _failure(error))
    frames.answer(setup, {"ready": True})
    with asyncio.Runner() as runner:
        while True:
            question = frames.take()
            frames.answer(question, runner.run(stage.answer(question)))


class EnvironmentStage:
    """Episodes of a worker process by number."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._episodes: dict[int, Episode] = {}

    async def answer(self, question: Frame) -> dict[str, Any]:
        try:
            verb, number = question.head["verb"], question.head["number"]
            return await self._answer(verb, number, unpacked(question.arrays["subject"]))
        except Exception as error:
            return _failure(error)

    async def _answer(self, verb: str, number: int, subject: Any) -> dict[str, Any]:
        if verb == "reset":
            self._episodes[number] = self._env.episode()
            await self._episodes[number].reset(subject)
            return {}
        if verb == "step":
            return {"observation": _plain(await self._episodes[number].step(subject))}
        if verb == "demonstrate":
            episode = self._episodes[number]
            return {"shown": episode.demonstrate().content if isinstance(episode, Demonstrates) else None}
        await self._episodes.pop(number).close()
        return {"is_alone": not has_children()}


def _plain(observation: Observation) -> dict[str, Any]:
    reward = None if observation.reward is None else float(observation.reward)
    return {
        "messages": [_told(m) for m in observation.messages],
        "done": bool(observation.done),
        "reward": reward,
    }


def _told(message: Message) -> dict[str, Any]:
    """With the bytes of its pictures: the other side has no store in common."""
    told = plain_message(message)
    return told | {"images": [uri_of(each.data) for each in message.images]} if message.images else told


def _failure(error: Exception) -> dict[str, Any]:
    is_spent = isinstance(error, MemoryError | RecursionError)
    return {"error": f"{type(error).__name__}: {error}"[:_LONGEST_ERROR], "is_spent": is_spent}
