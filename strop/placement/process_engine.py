"""Engine in a local process, restarted when it is lost.

Requests, completions and heartbeats go through pipes, weights through shared memory. A lost process is replaced: the
new one proves that it holds the newest version and gets every unanswered request again, with its prompt and key. Random
numbers belong to (key, position), so under the same weights it samples the same tokens, except for rounding where other
requests were in the same batch.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, EngineError
from strop.placement.hosted import computing_here
from strop.placement.lockstep import InStep
from strop.roles import Engine
from strop.types import Group, IntArray, Metrics, Sampling
from strop.weights.delivery import check
from strop.workers.child import START_SECONDS, Child
from strop.workers.frames import Arrays, Frame
from strop.workers.limits import whole_environment
from strop.workers.pickled_parts import packed, told
from strop.workers.untrusted_answers import NoAnswer

_SETUP, _RELOAD = -1, 0  # the numbers of what a new process begins with


@dataclass(eq=False)
class Pending:
    """Unanswered request."""

    head: dict[str, Any]
    arrays: Arrays
    answer: asyncio.Future[Frame]
    is_aborted: bool = False

    @property
    def is_load(self) -> bool:
        return bool(self.head["kind"] == "load")


@dataclass
class LocalProcess(Engine):
    """Hosts `inner` with `threads` threads; `restarts` is the limit in a row without an answered request between.

    With `in_step` it waits after each completion until all requests that follow from it have arrived: slower, and the
    same bits as an engine within this process.
    """

    sends: ClassVar[bool] = True

    inner: Engine
    threads: int = 1
    in_step: bool = False
    restarts: int = 3
    silence_seconds: float = 60.0  # longer than any decode step
    pid: int = field(init=False, repr=False, compare=False, default=0)  # of the process that computes
    num_lost: int = field(init=False, repr=False, compare=False, default=0)
    num_generated: int | None = field(init=False, repr=False, compare=False, default=None)  # tokens, as last heard
    _metrics: dict[str, list[float]] = field(init=False, repr=False, compare=False, default_factory=dict)
    _lost_in_row: int = field(init=False, repr=False, compare=False, default=0)
    _model: Path | None = field(init=False, repr=False, compare=False, default=None)
    _child: Child | None = field(init=False, repr=False, compare=False, default=None)
    _is_up: bool = field(init=False, repr=False, compare=False, default=False)
    _hello: asyncio.Future[Frame] | None = field(init=False, repr=False, compare=False, default=None)
    _newest: WeightVersion | None = field(init=False, repr=False, compare=False, default=None)
    _buffers: Any = field(init=False, repr=False, compare=False, default=None)
    _asked: dict[int, Pending] = field(init=False, repr=False, compare=False, default_factory=dict)
    _numbers: Iterator[int] = field(init=False, repr=False, compare=False, default_factory=lambda: itertools.count(1))
    _supervisor: asyncio.Task[None] | None = field(init=False, repr=False, compare=False, default=None)
    _error: Exception | None = field(init=False, repr=False, compare=False, default=None)
    _step: InStep = field(init=False, repr=False, compare=False, default_factory=InStep)

    # ---- the engine's role

    def open(self, model: Path) -> None:
        """Start the process; it reads the model while we go on, and what it finds wrong is told to the first asker."""
        if self.threads < 1 or self.restarts < 0 or self.silence_seconds <= 0:
            raise ConfigurationError(f"need threads >= 1, restarts >= 0 and silence_seconds > 0, got {self}")
        self._model = Path(model).absolute()
        self._child = self._start()

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt` in the process; if that is lost, in the next one."""
        head = {"kind": "sample", "key": key, "sampling": vars(sampling)}  # `asdict` would copy each field
        answer = await self._ask(head, {"prompt": np.asarray(prompt, dtype=np.int64)})
        arrays = answer.arrays
        aux = {name.removeprefix("aux."): array for name, array in arrays.items() if name.startswith("aux.")}
        return Completion(arrays["tokens"], arrays["logprobs"], arrays["versions"], Stop(answer.head["stop"]), aux)

    async def load(self, version: WeightVersion) -> str:
        """Have the process take new weights; from now on a replacement begins with them."""
        self._newest = WeightVersion(version.step, version.fingerprint, self._shared(version.location))
        answer = await self._ask(_load_head(self._newest), {})
        return str(answer.head["fingerprint"])

    def abort(self, key: int) -> None:
        for asked in self._asked.values():
            asked.is_aborted |= asked.head.get("key") == key
        self._say({"kind": "abort", "key": key}, {})

    def forget(self) -> None:
        self._say({"kind": "forget"}, {})

    def hurry(self, keys: Sequence[int]) -> None:
        self._say({"kind": "hurry", "keys": list(keys)}, {})

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Whoever learns within has no groups there; what it said since the last step, in the mean."""
        told, self._metrics = self._metrics, {}
        return {name: sum(each) / len(each) for name, each in told.items()}

    async def close(self) -> None:
        """End the process; whoever still waits is told."""
        self._error = self._error or EngineError("the engine is closed")
        if self._supervisor is not None and not self._supervisor.done():
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
        self._end_child(patience=0.0)
        self._refuse_all(self._error)

    def stacks(self) -> str:
        """What the process is doing right now; may be asked from any thread."""
        child = self._child
        return child.stacks() if child is not None and self.pid else "no process\n"

    # ---- asking

    async def _ask(self, head: dict[str, Any], arrays: Arrays) -> Frame:
        self._supervise()
        asked = Pending(head | {"id": next(self._numbers)}, arrays, asyncio.get_running_loop().create_future())
        number = asked.head["id"]
        self._asked[number] = asked
        self._say(asked.head, arrays)
        try:
            return await asked.answer
        except asyncio.CancelledError:
            self._say({"kind": "withdraw", "id": number}, {})
            raise
        finally:
            self._asked.pop(number, None)

    def _say(self, head: dict[str, Any], arrays: Arrays) -> None:
        """Tell the process, if there is one; to a new one, `_say_again` tells all that still matters."""
        if not self._is_up or self._child is None:
            return
        if self.in_step:
            self._step.say(self._child, head, arrays)
        else:
            self._child.send(head, arrays)

    def _hear(self, frame: Frame) -> None:
        head = frame.head
        self.num_generated = head.get("num_generated", self.num_generated)
        for name, metric in head.get("metrics", {}).items():
            self._metrics.setdefault(name, []).append(metric)
        match head["kind"]:
            case "ready" | "refused":
                self._answer_hello(frame)
            case "finished" if self._child is not None:
                self._step.finished(self._child, head["number"])
            case "answer" if head["id"] == _RELOAD:
                self._answer_hello(frame)
            case "answer" if head["id"] in self._asked:
                self._lost_in_row = 0
                asked = self._asked[head["id"]]
                if not asked.answer.done():
                    _settle(asked.answer, frame)

    def _answer_hello(self, frame: Frame) -> None:
        if self._hello is not None and not self._hello.done():
            _settle(self._hello, frame)

    # ---- keeping a process

    def _supervise(self) -> None:
        """See to it that somebody watches the process on this loop."""
        if self._error is not None:
            raise self._error
        if self._supervisor is None or self._supervisor.done():
            self._supervisor = asyncio.get_running_loop().create_task(self._keep_alive())

    async def _keep_alive(self) -> None:
        """Start, serve, and start again; what cannot be helped reaches everybody who waits."""
        try:
            while True:
                await self._serve()
        except Exception as error:
            self._error = error
            self._refuse_all(error)
        finally:
            self._end_child(patience=0.0)

    async def _serve(self) -> None:
        """One process from start to loss."""
        child = self._child = self._child or self._start()
        try:
            child.attach(self._hear)
            self.pid = int((await self._completion(child)).head["pid"])
            await self._reload(child)
            self._is_up = True
            self._say_again()
            await child.until_silent(self.silence_seconds)
        except NoAnswer as loss:
            self._count(f"{loss}; {self._end_child()}".removeprefix("; "))

    async def _reload(self, child: Child) -> None:
        """A new process proves that it holds the newest version, unless that is just what it is asked next."""
        version = self._newest
        if version is None or any(asked.is_load for asked in self._asked.values()):
            return
        child.send(_load_head(version) | {"id": _RELOAD})
        child.send({"kind": "settled", "after": 0})
        answer = await self._completion(child)
        if version.fingerprint:
            check(version, answer.head["fingerprint"], f"the new process of {self._name}")

    async def _completion(self, child: Child) -> Frame:
        self._hello = asyncio.get_running_loop().create_future()
        frame: Frame = await child.wait_for(self._hello, START_SECONDS)
        return frame

    def _say_again(self) -> None:
        """Ask everything that is not answered, weights first and the rest in the order in which it was asked."""
        for asked in sorted(self._asked.values(), key=lambda asked: not asked.is_load):
            self._say(asked.head, asked.arrays)
            if asked.is_aborted:
                self._say({"kind": "abort", "key": asked.head["key"]}, {})

    def _count(self, ending: str) -> None:
        self.num_lost += 1
        self._lost_in_row += 1
        if self._lost_in_row > self.restarts:
            raise EngineError(
                f"the process of {self._name} was lost {self._lost_in_row} times in a row without an answer between "
                f"(restarts={self.restarts}): {ending}"
            )

    def _start(self) -> Child:
        if self._model is None:
            raise ConfigurationError("LocalProcess has no model yet: call open(model) first")
        engine = packed(self.inner, self._name, "a process of its own")
        child = Child("strop.placement.engine_host", whole_environment(self.threads))
        setup = {"in_step": self.in_step, "model": str(self._model), "computing": computing_here(self.threads)}
        child.send({**setup, "id": _SETUP}, {"engine": engine})
        return child

    def _end_child(self, patience: float = 0.2) -> str:
        child, self._child, self._is_up = self._child, None, False
        self._step.over()
        return child.end(patience) if child is not None else ""

    def _refuse_all(self, error: Exception) -> None:
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(error)

    @property
    def _name(self) -> str:
        return type(self.inner).__name__

    def _shared(self, location: Any) -> Any:
        """Where the process finds these weights: a folder, or shared memory."""
        if isinstance(location, str | Path):
            return str(location)
        from strop.weights.mapped_memory import Alternating, SharedWeights

        if isinstance(location, SharedWeights):
            return location
        if not isinstance(location, Mapping):
            raise DeliveryError(f"weights must be a folder or tensors by name, got {type(location).__name__}")
        self._buffers = self._buffers or Alternating()
        return self._buffers.write(location)


def _load_head(version: WeightVersion) -> dict[str, Any]:
    location = getattr(version.location, "address", version.location)
    return {"kind": "load", "step": version.step, "fingerprint": version.fingerprint, "location": location}


def _settle(future: asyncio.Future[Frame], frame: Frame) -> None:
    if "error" not in frame.head:
        future.set_result(frame)
        return
    future.set_exception(told(frame.head["error"], frame.head["message"], "the engine's process"))
