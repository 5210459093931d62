"""Engines as actors of a Ray cluster (Moritz et al. 2018), and weights through its object store.

Without an address a small Ray of our own is started on this machine and ended with the last engine. A lost actor is
replaced: the new one proves that it holds the newest version and gets every unanswered request again. Which requests
are computed together depends on when they arrive, so bits may differ in the last place between two runs.
"""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.abilities import uses_gpu
from strop.errors import ConfigurationError, EngineError, StropError
from strop.generate.engines.several import Several
from strop.placement.hosted import Hosted, packed
from strop.roles import Channel, Engine, Trainer
from strop.types import Completion, IntArray, Sampling, WeightVersion
from strop.weights.channels.memory import Memory
from strop.weights.delivery import as_held, check, deliver
from strop.weights.fingerprint import fingerprint

if TYPE_CHECKING:
    from strop.run import Run

_START_SECONDS = 300.0  # imports and a model from disk, on a machine that is busy
_MIN_STORE = 1 << 28  # bytes of the object store of a Ray of our own
_CONCURRENCY = 10_000  # requests that an actor may hold; the engine inside decides how many it decodes
_MISSING = "placing engines on Ray needs the ray package: pip install 'strop[ray]'"
_OWN_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing leaves the machine
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # what makes Ray listen on the loopback alone; read at its import
}
_users: set[int] = set()  # open engines on a Ray of our own: there is one per process, and the last of them ends it


def place(run: Run, engines: int) -> Run:
    """The same run with `engines` copies of its engine as actors, each on a GPU of its own where they use one."""
    if isinstance(run.engine, RayActor | Several):
        raise ConfigurationError(f"the engine of this run is placed already: {run.engine}")
    if find_spec("ray") is None:
        raise ConfigurationError(_MISSING)
    gpus = float(uses_gpu(run.engine))
    actors = tuple(RayActor(copy.deepcopy(run.engine), gpus=gpus) for _ in range(engines))
    channel = ObjectStore() if isinstance(run.channel, Memory) else run.channel
    return replace(run, engine=actors[0] if engines == 1 else Several(actors), channel=channel)


@dataclass
class RayActor(Engine):
    """Hosts `inner` in an actor; `restarts` are those in a row without any request answered between."""

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
        self._is_ours = _connect(self.address, _size(self._model))
        if self._is_ours:
            _users.add(id(self))
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
        self._newest = version = replace(version, location=_stored(version.location))
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
        if self._is_ours:
            _users.discard(id(self))
            if not _users:
                _ray().shutdown()

    # ---- keeping an actor

    async def _ask(self, order: Callable[[Any], Any]) -> Any:
        """Give an order until some actor has carried it out."""
        while True:
            actor = await self._ready()
            reference = order(actor)
            try:
                return await reference
            except asyncio.CancelledError:
                _ray().cancel(reference)
                raise
            except _ray().exceptions.RayActorError as error:
                self._count(actor, error)
            except _ray().exceptions.RayTaskError as error:
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
                    await asyncio.wait_for(self._raise(actor), _START_SECONDS)
                except TimeoutError:
                    self._error = EngineError(
                        f"no actor for {self._name} within {_START_SECONDS:g} s: has the cluster {self.cpus:g} CPUs "
                        f"and {self.gpus:g} GPUs to spare?"
                    )
                except _ray().exceptions.RayActorError as error:
                    self._count(actor, error)
                except _ray().exceptions.RayTaskError as error:
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
            _ray().kill(actor)
        except _ray().exceptions.RayError:
            return  # whoever waits for an answer hears of it too

    def _start(self) -> Any:
        if self._model is None:
            raise ConfigurationError("RayActor has no model yet: call open(model) first")
        cpus = 0.0 if self._is_ours else self.cpus
        actor = _ray().remote(Hosted).options(max_concurrency=_CONCURRENCY, num_cpus=cpus, num_gpus=self.gpus)
        return actor.remote(sys.path, _pickled(self.inner), self.threads, _is_deterministic())

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
        if actor is not None and _ray().is_initialized():
            _ray().kill(actor)

    @property
    def _name(self) -> str:
        return type(self.inner).__name__


@dataclass
class ObjectStore(Channel):
    """A channel that puts a version's weights into the store once, for all actors; on each node they share memory."""

    _trainer: Trainer | None = field(default=None, init=False, repr=False, compare=False)
    _engines: tuple[Engine, ...] = field(default=(), init=False, repr=False, compare=False)

    def connect(self, trainer: Trainer, engines: Sequence[Engine]) -> None:
        self._trainer, self._engines = trainer, tuple(engines)

    async def publish(self, step: int) -> WeightVersion:
        """Store the current weights and have every engine prove that it holds them."""
        if self._trainer is None:
            raise ConfigurationError("ObjectStore has no trainer yet: call connect(trainer, engines) first")
        weights = as_held(self._trainer.weights(), self._engines)
        version = WeightVersion(step, fingerprint(weights), _stored(weights))
        await deliver(version, self._engines)
        return version


# ---- Ray


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigurationError(_MISSING) from None
    return ray


def _connect(address: str, model_bytes: int) -> bool:
    """Reach a cluster, or start a Ray of our own; answers whether it is ours to end."""
    address = address or os.environ.get("RAY_ADDRESS", "")
    for name, value in {} if address else _OWN_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray = _ray()
    if ray.is_initialized():
        return bool(_users)
    quiet = {"log_to_driver": False, "configure_logging": False}
    if address:
        ray.init(address=address, **quiet)
        return False
    room = max(_MIN_STORE, 4 * model_bytes)  # the newest version, the one before, and one that is being written
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=room, **quiet)
    return True


def _stored(location: Any) -> Any:
    """A reference to weights in the object store; a folder, or what is there already, stays as it is."""
    if isinstance(location, str | Path | _ray().ObjectRef):
        return location
    if not isinstance(location, Mapping):
        raise ConfigurationError(f"weights must be a folder or tensors by name, got {type(location).__name__}")
    return _ray().put(packed(location))


def _load(actor: Any, version: WeightVersion) -> Any:
    # a reference is resolved to what it refers to only as an argument of its own
    return actor.load.remote(replace(version, location=None), version.location)


def _pickled(engine: Engine) -> bytes:
    try:
        return pickle.dumps(engine, protocol=5)
    except Exception as error:
        raise ConfigurationError(f"{type(engine).__name__} cannot be sent to an actor: {error}") from error


def _told(error: Any) -> Exception:
    """The error that was raised in the actor, where it is one of ours."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, StropError) else StropError(f"the engine's actor failed: {cause or error}")


def _size(model: Path) -> int:
    return sum(path.stat().st_size for path in model.glob("*.safetensors"))


def _is_deterministic() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.are_deterministic_algorithms_enabled())
