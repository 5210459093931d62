"""The parent's end of a reward worker: start it, ask it within a deadline, kill it with all it started."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from strop.errors import RewardError
from strop.filter.keeper import KILLED
from strop.filter.marks import Fault, Mark, from_json
from strop.filter.worker import frame
from strop.roles import Reward
from strop.types import Group

START_SECONDS = 60.0
_REAP_SECONDS = 5.0
_LONGEST_LINE = 1 << 24  # bytes


def setup_frame(rewards: Sequence[Reward], memory_bytes: int | None) -> bytes:
    """What a worker is told first; each reward is pickled by itself, so that the one that cannot be is named."""
    return frame({"path": sys.path, "memory_bytes": memory_bytes, "rewards": [_pickled(reward) for reward in rewards]})


def _pickled(reward: Reward) -> bytes:
    try:
        return pickle.dumps(reward, protocol=5)
    except Exception as error:
        raise RewardError(
            f"reward {type(reward).__name__} cannot be sent to its worker process ({error}); define it at the top of an"
            " importable file, or set `is_inline = True` if it is pure and quick"
        ) from error


class Worker:
    """A process that marks groups, one at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, setup: bytes, rewards: Sequence[Reward]) -> Worker:
        """A worker that has loaded the rewards; what it cannot load stops the run."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "strop.filter.worker"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
            limit=_LONGEST_LINE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        worker = cls(process)
        try:
            _require_ready(await worker._exchange(setup, START_SECONDS), rewards)
        except BaseException:
            await worker.kill()
            raise
        return worker

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, index: int, group: Group, seconds: float) -> list[Mark]:
        """The marks of reward number `index`; a worker that does not answer as it should is dead afterwards."""
        try:
            answer = await self._exchange(frame((index, group)), seconds)
            marks = from_json(answer.get("marks"), len(group.trajectories))
        except BaseException as error:
            await self.kill()  # after a cancellation too: its answer would be taken for the next one's
            if not isinstance(error, RewardError | ValueError):
                raise
            return [Fault(str(error), is_whole=True)] * len(group.trajectories)
        if answer.get("is_alone") is not True:
            await self.kill()  # and with it the processes the reward left running
        return marks

    async def kill(self) -> None:
        """End the worker and whatever it started; returns when it is gone."""
        with suppress(ProcessLookupError):
            self._process.terminate()  # its keeper kills all that is left, then ends
        try:
            await asyncio.wait_for(self._process.communicate(), _REAP_SECONDS)
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def _exchange(self, message: bytes, seconds: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                line = await self._send(message)
        except TimeoutError:
            raise RewardError(f"no answer within {seconds:g} s") from None
        if not line.endswith(b"\n"):
            raise RewardError(f"its process died ({_ending(await self._process.wait())})")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _send(self, message: bytes) -> bytes:
        """Write a frame and read a line; a short line says that the process is gone."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        with suppress(ConnectionError):
            stdin.write(message)
            await stdin.drain()
        return await stdout.readline()


class Pool:
    """At most `size` workers, started when they are needed and replaced when they die."""

    def __init__(self, rewards: Sequence[Reward], size: int, memory_bytes: int | None) -> None:
        self._rewards = rewards
        self._setup = setup_frame(rewards, memory_bytes)
        self._free = asyncio.Semaphore(size)
        self._idle: list[Worker] = []

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Worker]:
        """A worker that is nobody else's meanwhile."""
        async with self._free:
            worker = await self._take()
            try:
                yield worker
            finally:
                if worker.is_alive:
                    self._idle.append(worker)

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().kill()

    async def _take(self) -> Worker:
        """The worker used last, so that a second one starts only when two are needed at once."""
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await worker.kill()
        return await Worker.start(self._setup, self._rewards)


def _require_ready(answer: dict[str, Any], rewards: Sequence[Reward]) -> None:
    if not answer.get("ready"):
        name = type(rewards[int(answer.get("index", 0))]).__name__
        raise RewardError(
            f"reward {name} cannot be loaded in its worker process: {answer.get('error')}; it must be importable there"
        )


def _ending(code: int) -> str:
    number = -code if code < 0 else code - KILLED
    return f"signal {signal.Signals(number).name}" if number in set(signal.Signals) else f"exit code {code}"
