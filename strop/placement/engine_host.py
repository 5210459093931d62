"""Process that hosts an engine: reads requests between two decode steps and answers as they finish.

The first message holds the engine; when the pipe ends, so does the process.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from strop.backends import WeightVersion
from strop.capabilities import Hurries, generated, learners_in, outermost
from strop.placement.hosted import arrived
from strop.roles import Engine
from strop.types import Sampling
from strop.workers.frames import Frame, Frames


class Host:
    """One engine and its connection."""

    def __init__(self, engine: Engine, frames: Frames, in_step: bool) -> None:
        self._engine, self._frames, self._in_step = engine, frames, in_step
        self._learners = learners_in(engine)
        self._running: dict[int, asyncio.Task[None]] = {}
        self._num_finished = 0  # how often requests have ended
        self._num_settled = 0  # of those, how often the parent has said all that follows from it
        self._is_telling = False
        self._heard: list[Frame] = []  # of what belongs together, while more of it is to come

    async def serve(self) -> None:
        """Until the parent is gone."""
        self._over = asyncio.get_running_loop().create_future()
        self._frames.attach(self._receive, lambda why: None if self._over.done() else self._over.set_result(why))
        await self._over

    def _receive(self, frame: Frame) -> None:
        """In step, what belongs together is begun together, however the pipe cut it."""
        match frame.head["kind"]:
            case "ping":
                self._frames.send({"kind": "pong", **self._known()})
            case "settled":
                self._num_settled = frame.head["after"]
                heard, self._heard = self._heard, []
                for each in heard:
                    self._begin(each)
            case _ if self._in_step:
                self._heard.append(frame)
            case _:
                self._begin(frame)

    def _begin(self, frame: Frame) -> None:
        """Everything starts by call_soon, so that what came first also happens first."""
        loop, head = asyncio.get_running_loop(), frame.head
        match head["kind"]:
            case "sample":
                self._start(head["id"], self._sample(frame))
            case "load":
                self._start(head["id"], self._load(head))
            case "abort":
                loop.call_soon(self._engine.abort, head["key"])
            case "forget":
                loop.call_soon(self._engine.forget)
            case "hurry":
                for _, engine in outermost(self._engine, Hurries):
                    loop.call_soon(engine.hurry, head["keys"])
            case "withdraw" if head["id"] in self._running:
                loop.call_soon(self._running[head["id"]].cancel)

    def _start(self, number: int, work: Coroutine[Any, Any, Frame]) -> None:
        self._running[number] = asyncio.create_task(self._answer(number, work))

    async def _answer(self, number: int, work: Coroutine[Any, Any, Frame]) -> None:
        """Send what came of it; an error is an answer too."""
        try:
            answer = await work
        except Exception as error:
            answer = Frame({"error": type(error).__name__, "message": str(error)})
        finally:
            del self._running[number]
        self._frames.send({"kind": "answer", "id": number, **answer.head, **self._known()}, answer.arrays)
        if self._in_step and not self._is_telling:
            self._is_telling = True
            # in the next pass, when all that ended with the same decode step have answered
            asyncio.get_running_loop().call_soon(self._wait_for_what_follows)

    def _wait_for_what_follows(self) -> None:
        """Stand still until the parent has said all that follows, as if it ran on this very loop."""
        self._is_telling = False
        self._num_finished += 1
        self._frames.send({"kind": "finished", "number": self._num_finished})
        try:
            while self._num_settled < self._num_finished:
                for frame in self._frames.wait():
                    self._receive(frame)
        except EOFError:
            self._over.set_result("the parent is gone")

    def _known(self) -> dict[str, Any]:
        """What whoever asks why nothing moves should know; and metrics, when it keeps nothing waiting to say them."""
        told = {} if self._running else {name: each for part in self._learners for name, each in part.learn(()).items()}
        return {"num_generated": generated(self._engine)} | ({"metrics": told} if told else {})

    async def _sample(self, frame: Frame) -> Frame:
        asked = dict(frame.head["sampling"])
        sampling = Sampling(**asked | {"stop": tuple(asked["stop"])})
        done = await self._engine.sample(frame.arrays["prompt"], sampling, frame.head["key"])
        arrays: dict[str, Any] = {"tokens": done.tokens, "logprobs": done.logprobs, "versions": done.versions}
        return Frame({"stop": done.stop.value}, arrays | {f"aux.{name}": array for name, array in done.aux.items()})

    async def _load(self, head: dict[str, Any]) -> Frame:
        location: Any = head["location"]
        if isinstance(location, dict):
            from strop.weights.mapped_memory import attach  # an engine without weights needs no torch

            location = attach(location)
        version = WeightVersion(head["step"], head["fingerprint"], location)
        return Frame({"fingerprint": await self._engine.load(version), "step": version.step})


def serve(frames: Frames) -> None:
    """Take the engine, open its model, say so, then answer."""
    setup = frames.take()
    engine = _opened(setup, frames)
    if engine is not None:
        gc.collect()
        gc.freeze()  # a model and its libraries are many objects, and none of them is ever garbage
        asyncio.run(Host(engine, frames, setup.head["in_step"]).serve())


def _opened(setup: Frame, frames: Frames) -> Engine | None:
    """The engine with its model, or None once the parent knows why not."""
    try:
        engine = arrived(setup.arrays["engine"], setup.head["computing"])
        engine.open(Path(setup.head["model"]))
    except Exception as error:
        frames.answer(setup, {"kind": "refused", "error": type(error).__name__, "message": str(error)})
        return None
    frames.answer(setup, {"kind": "ready", "pid": os.getpid()})
    return engine
