"""Engine as a Ray actor (Moritz et al. 2018), with weights through the object store.

Without an address a small local Ray is started, and stopped with the last engine. A lost actor is replaced: the new one
proves that it holds the newest version and gets every unanswered request again. Batches depend on the arrival times of
requests, so bits may differ in the last place between two runs.
"""

from __future__ import annotations

import asyncio
import copy
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from strop.backends import Completion, WeightVersion
from strop.capabilities import uses_gpu
from strop.errors import ConfigurationError, EngineError, StropError
from strop.generate.engines.wrappers.load_balanced import Several
from strop.placement.hosted import Hosted, computing_here
from strop.placement.ray_cluster import join, leave, ray_package, require_ray
from strop.placement.ray_store import ObjectStore, stored
from strop.roles import Engine
from strop.types import IntArray, Sampling
from strop.weights.channels.memory import Memory
from strop.weights.delivery import check
from strop.workers.child import START_SECONDS
from strop.workers.pickled_parts import packed

if TYPE_CHECKING:
    from strop.run import Run

_CONCURRENCY = 10_000  # requests that an actor may hold; the engine inside decides how many it decodes


def place(run: Run, engines: int) -> Run:
    """The same run with `engines` copies of its engine as actors, each on a GPU of its own where they use one."""
    if isinstance(run.engine, RayActor | Several):
        raise ConfigurationError(f"the engine of this run is placed already: {run.engine}")
    require_ray()
    gpus = float(uses_gpu(run.engine))
    actors = tuple(RayActor(copy.deepcopy(run.engine), gpus=gpus) for _ in range(engines))
    channel = ObjectStore() if isinstance(run.channel, Memory) else run.channel
    return replace(run, engine=actors[0] if engines == 1 else Several(actors), channel=channel)


@dataclass
class RayActor(Engine):
    """Hosts `inner` in an actor; `restarts` is the limit in a row without an answered request between."""

    sends: ClassVar[bool] = True

    inner: Engine
    address: str = ""  # of a cluster; empty: RAY_ADDRESS, or else a Ray of our own on this machine
    cpus: float = 1.0  # that the cluster reserves; a Ray of our own reserves none, so that nothing waits for its turn
    gpus: float = 0.0
    threads: int = 1
    restarts: int = 3
    silence_seconds: float = 60.0  # longer than any decode step
    pid: int = field(init=False, repr=False, compare=False, default=0)  # of the process that computes
    num_lost: int = field(init=False, repr=False, compare=False, default=0)
    _lost_in_row: int = field(init=False, repr=False, compare=False, default=0)
    _model: Path | None = field(init=False, repr=False, compare=False, default=None)
    _is_ours: bool = field(init=False, repr=False, compare=False, default=False)  # the whole Ray
    _actor: Any = field(init=False, repr=False, compare=False, default=None)
    _is_up: bool = field(init=False, repr=False, compare=False, default=False)
    _newest: WeightVersion | None = field(init=False, repr=False, compare=False, default=None)
    _rising: asyncio.Lock | None = field(init=False, repr=False, compare=False, default=None)
    _watcher: asyncio.Task[None] | None = field(init=False, repr=False, compare=False, default=None)
    _running: Counter[int] = field(init=False, repr=False, compare=False, default_factory=Counter)  # by key
    _aborted: set[int] = field(init=False, repr=False, compare=False, default_factory=set)
    _error: Exception | None = field(init=False, repr=False, compare=False, default=None)

    # ---- the engine's role

    def open(self, model: Path) -> None:
        """Start the actor; it reads the model while we go on. Every node must see the folder under the same name."""
        if self.threads < 1 or self.restarts < 0 or self.silence_seconds <= 0:
            raise ConfigurationError(f"need threads >= 1, restarts >= 0 and silence_seconds > 0, got {self}")
        self._model, self._error = Path(model).resolve(), None
        self._is_ours = join(self, self.address, self._model)
        self._actor = self._start()

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt` in the actor; if that is lost, in the next one."""

        def order(actor: Any) -> Any:
            reference = actor.sample.remote(prompt, sampling, key)
            if key in self._aborted:
                actor.abort.remote(key)  # again: the actor that heard of it is gone
            return reference

        self._running[key] += 1
        try:
            completion: Completion = await self._ask(order)
        finally:
            self._running[key] -= 1
            self._aborted.discard(key)
        self._lost_in_row = 0
        return completion

    async def load(self, version: WeightVersion) -> str:
        """Have the actor take new weights; from now on a replacement begins with them."""
        self._newest = version = replace(version, location=stored(version.location))
        answer = await self._ask(lambda actor: _load(actor, version))
        return str(answer)

    def abort(self, key: int) -> None:
        if self._running[key]:
            self._aborted.add(key)
        if self._is_up:
            self._actor.abort.remote(key)

    def hurry(self, keys: Sequence[int]) -> None:
        if self._is_up:
            self._actor.hurry.remote(list(keys))

    def forget(self) -> None:
        if self._is_up:
            self._actor.forget.remote()

    async def close(self) -> None:
        """End the actor, and with the last one the Ray that was started for them; whoever still waits is told."""
        self._error = self._error or EngineError("the engine is closed")
        if self._watcher is not None:
            self._watcher.cancel()
        self._drop()
        leave(self)

    # ---- keeping an actor

    async def _ask(self, order: Callable[[Any], Any]) -> Any:
        """Give an order until some actor has carried it out."""
        while True:
            actor = await self._ready()
            reference = order(actor)
            try:
                return await reference
            except asyncio.CancelledError:
                ray_package().cancel(reference)
                raise
            except ray_package().exceptions.RayActorError as error:
                self._count(actor, error)
            except ray_package().exceptions.RayTaskError as error:
                raise _told(error) from None

    async def _ready(self) -> Any:
        """The actor, once it has read the model and holds the newest weights."""
        self._rising = self._rising or asyncio.Lock()
        async with self._rising:
            while not self._is_up:
                if self._error is not None:
                    raise self._error
                actor = self._actor = self._actor or self._start()
                try:
                    await asyncio.wait_for(self._raise(actor), START_SECONDS)
                except TimeoutError:
                    self._error = EngineError(
                        f"no actor for {self._name} within {START_SECONDS:g} s: has the cluster {self.cpus:g} CPUs "
                        f"and {self.gpus:g} GPUs to spare?"
                    )
                except ray_package().exceptions.RayActorError as error:
                    self._count(actor, error)
                except ray_package().exceptions.RayTaskError as error:
                    self._error = _told(error)
        return self._actor

    async def _raise(self, actor: Any) -> None:
        """Bring an actor to where the others are."""
        self.pid = await actor.open.remote(str(self._model))
        version = None
        while version is not self._newest:  # another may be published meanwhile
            version = self._newest
            assert version is not None
            answer = await _load(actor, version)
            if version.fingerprint:
                check(version, answer, f"the new actor of {self._name}")
        self._is_up = True
        self._watcher = asyncio.get_running_loop().create_task(self._watch(actor))

    async def _watch(self, actor: Any) -> None:
        """Kill an actor that gives no sign of life, so that whoever waits for it hears of it."""
        try:
            while self._actor is actor:
                async with asyncio.timeout(self.silence_seconds):
                    await actor.ping.remote()
                await asyncio.sleep(self.silence_seconds / 4)
        except TimeoutError:
            ray_package().kill(actor)
        except ray_package().exceptions.RayError:
            return  # whoever waits for an answer hears of it too

    def _start(self) -> Any:
        if self._model is None:
            raise ConfigurationError("RayActor has no model yet: call open(model) first")
        cpus = 0.0 if self._is_ours else self.cpus
        actor = ray_package().remote(Hosted).options(max_concurrency=_CONCURRENCY, num_cpus=cpus, num_gpus=self.gpus)
        return actor.remote(sys.path, packed(self.inner, self._name, "an actor"), computing_here(self.threads))

    def _count(self, actor: Any, error: Exception) -> None:
        """Note the loss of an actor, once for all who waited for it."""
        if actor is not self._actor:
            return
        self._drop()
        self.num_lost += 1
        self._lost_in_row += 1
        if self._lost_in_row > self.restarts:
            self._error = EngineError(
                f"the actor of {self._name} was lost {self._lost_in_row} times in a row without an answer between "
                f"(restarts={self.restarts}): {error}"
            )

    def _drop(self) -> None:
        actor, self._actor, self._is_up = self._actor, None, False
        if actor is not None and ray_package().is_initialized():
            ray_package().kill(actor)

    @property
    def _name(self) -> str:
        return type(self.inner).__name__


def _load(actor: Any, version: WeightVersion) -> Any:
    # a reference is resolved to what it refers to only as an argument of its own
    return actor.load.remote(replace(version, location=None), version.location)


def _told(error: Any) -> Exception:
    """The error that was raised in the actor, where it is one of ours."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, StropError) else StropError(f"the engine's actor failed: {cause or error}")
