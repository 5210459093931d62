"""Engines on Ray answer as engines here do, losing one is no more than a delay, and whoever started Ray ends it."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from strop.backends import Completion, Stop, WeightVersion
from strop.control.admission.bounded_lag import BoundedLag
from strop.errors import ConfigurationError, DeliveryError, EngineError, ModelError, StropError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.load_balanced import Several
from strop.launch.running.launch import launch
from strop.placement.place import place
from strop.placement.ray_engine import RayActor
from strop.placement.ray_store import ObjectStore
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.storage.run_source import from_source
from strop.types import Metrics, Sampling
from strop.weights.fingerprint import fingerprint
from tests.parts import LongerIsBetter
from tests.placement.light import BROKEN, DEADLY, REFUSED, STUCK, Letters, hurried, written
from tests.tiny_models import save_pocket_like
from tests.weights.weighing import Frozen, Scales

# its import is left to whoever starts it, because it decides then whom it listens to
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")

Result = TypeVar("Result")
SHORT = Sampling(max_tokens=5)
PROMPT = np.arange(3)
LAG = 2


def make_run(model: Path) -> Run:
    sizes = {"steps": 3, "groups_per_step": 3, "group_size": 4, "max_tokens": 12, "heldout_tasks": 2, "lag": LAG}
    run = build(recipe_named("grpo"), {"model": str(model), "learning_rate": 1e-3, "checkpoint_every": 2, **sizes})
    run.rewards = (LongerIsBetter(),)
    return run


@dataclass
class Killer:
    """Kills the engine's process after the first step."""

    engine: RayActor
    killed: int = 0

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        if step == 1:
            self.killed = self.engine.pid
            os.kill(self.engine.pid, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.slow  # a minute or more of waiting; that an actor's death costs nothing is also seen below, without a run
def test_a_run_on_ray_survives_the_death_of_its_actor(tmp_path: Path) -> None:
    run = place(make_run(save_pocket_like(tmp_path / "model")), "ray")
    assert isinstance(run.engine, RayActor)
    killer = Killer(run.engine)
    summary = launch(run, tmp_path, "run", [killer])
    assert summary["is_complete"] and killer.killed
    assert run.engine.num_lost == 1 and run.engine.pid != killer.killed
    folder = RunFolder(tmp_path / "run")
    rows = read_rows(folder.metrics)
    assert max(row["lag_max"] for row in rows if "lag_max" in row) <= LAG
    ledger = Ledger(folder.ledger, read_only=True)
    assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
    assert ledger.counts()["trained"] == 3 * 3 * 4
    assert not is_running()  # what the run started, it ended
    again = from_source(folder.recipe)
    assert again.engine == run.engine and again.channel == ObjectStore()


def is_running() -> bool:
    import ray

    return bool(ray.is_initialized())


@pytest.fixture(scope="module")
def own_ray() -> Iterator[None]:
    """Ray as an engine starts it, kept for the tests that follow."""
    keeper = RayActor(Letters())
    keeper.open(Path("nowhere"))
    yield
    asyncio.run(keeper.close())
    assert not is_running()


def run_on(engine: RayActor, work: Coroutine[Any, Any, Result], model: Path = Path("nowhere")) -> Result:
    """Open, work, close; never longer than the bound."""

    async def whole() -> Result:
        engine.open(model)
        try:
            async with asyncio.timeout(30):
                return await work
        finally:
            await engine.close()

    return asyncio.run(whole())


def test_each_request_gets_its_own_answer_and_an_abort_ends_one(own_ray: None) -> None:
    engine = RayActor(Letters(seconds_per_token=0.01))

    async def ask() -> tuple[list[Completion], Completion]:
        await engine.load(WeightVersion(4, "four", "folder"))
        many = await asyncio.gather(*(engine.sample(np.arange(1 + key % 7), SHORT, key) for key in range(40)))
        long = asyncio.create_task(engine.sample(PROMPT, Sampling(max_tokens=100_000), 77))
        await engine.sample(PROMPT, SHORT, 78)
        engine.forget()
        engine.abort(77)
        return many, await long

    many, cut = run_on(engine, ask())
    for key, completion in enumerate(many):
        assert completion.tokens.tolist() == written(key, 1 + key % 7, 5)
        assert completion.versions.tolist() == [4] * 5 and completion.stop is Stop.LENGTH
    assert cut.stop is Stop.ABORTED and 0 < len(cut.tokens) < 100_000
    assert engine.num_lost == 0 and is_running()  # somebody else still uses it
    with pytest.raises(EngineError, match="closed"):
        asyncio.run(engine.sample(PROMPT, SHORT, 1))


def test_who_must_hurry_is_told_to(own_ray: None) -> None:
    engine = RayActor(Letters(seconds_per_token=2.0))
    assert run_on(engine, hurried(engine)) == 100


def test_errors_come_back_as_they_are_and_a_lying_actor_is_found(own_ray: None) -> None:
    engine = RayActor(Letters())

    async def ask() -> None:
        with pytest.raises(ConfigurationError, match="1 to 9 tokens, got 10"):
            await engine.sample(PROMPT, SHORT, REFUSED)
        with pytest.raises(StropError, match="no such thing"):
            await engine.sample(PROMPT, SHORT, BROKEN)
        assert (await engine.sample(PROMPT, SHORT, 1)).tokens.tolist() == written(1, 3, 5)
        os.kill(engine.pid, signal.SIGKILL)
        await engine.sample(PROMPT, SHORT, 2)

    run_on(engine, ask())
    assert engine.num_lost == 1
    refusing, lagging = RayActor(Letters(refuses="no config.json")), RayActor(Letters(is_lagging=True))
    with pytest.raises(ModelError, match=r"no config\.json"):
        run_on(refusing, refusing.sample(PROMPT, SHORT, 1))

    async def lie() -> None:
        await lagging.load(WeightVersion(1, "one", "folder"))
        os.kill(lagging.pid, signal.SIGKILL)
        await lagging.sample(PROMPT, SHORT, 1)

    with pytest.raises(DeliveryError, match=r"new actor of Letters samples from weights nothing after step 1"):
        run_on(lagging, lie())


def test_what_ran_on_a_lost_actor_runs_again_with_the_newest_version(own_ray: None) -> None:
    engine = RayActor(Letters(seconds_per_token=0.02))

    async def ask() -> tuple[Completion, Completion]:
        await engine.load(WeightVersion(1, "one", "folder"))
        await engine.load(WeightVersion(2, "two", "folder"))
        tasks = [asyncio.create_task(engine.sample(PROMPT, Sampling(max_tokens=50), key)) for key in (5, 6)]
        await engine.sample(PROMPT, SHORT, 7)
        os.kill(engine.pid, signal.SIGKILL)
        engine.abort(6)
        return await tasks[0], await tasks[1]

    done, cut = run_on(engine, ask())
    assert done.tokens.tolist() == written(5, 3, 50) and set(done.versions) == {2}
    assert cut.stop is Stop.ABORTED and len(cut.tokens) < 50
    assert engine.num_lost == 1


def test_an_engine_that_always_dies_or_hangs_is_given_up(own_ray: None) -> None:
    deadly = RayActor(Letters(), restarts=1)
    with pytest.raises(EngineError, match=r"Letters was lost 2 times in a row .*restarts=1"):
        run_on(deadly, deadly.sample(PROMPT, SHORT, DEADLY))
    stuck = RayActor(Letters(), restarts=0, silence_seconds=0.5)
    with pytest.raises(EngineError, match=r"lost 1 times"):
        run_on(stuck, stuck.sample(PROMPT, SHORT, STUCK))


def test_weights_are_stored_once_and_arrive_bit_for_bit(own_ray: None) -> None:
    engines = RayActor(Scales()), RayActor(Scales())
    several, channel = Several(engines), ObjectStore()
    channel.connect(Frozen(), [several])  # type: ignore[arg-type]

    async def publish() -> WeightVersion:
        several.open(Path("nowhere"))
        try:
            return await channel.publish(3)
        finally:
            await several.close()

    version = asyncio.run(publish())
    assert version.fingerprint == fingerprint(Frozen().weights())
    assert all(engine._newest == version and engine._newest.location == version.location for engine in engines)


def test_its_settings_travel_and_a_run_is_placed_once(tmp_path: Path) -> None:
    engine = RayActor(TorchEngine(rows=8), address="somewhere:6379", cpus=2.0)
    assert eval(repr(engine)) == engine and pickle.loads(pickle.dumps(engine)) == engine
    run = place(make_run(tmp_path), "ray")
    assert run.engine == RayActor(TorchEngine()) and run.admission == BoundedLag(LAG)
    with pytest.raises(ConfigurationError, match="placed already"):
        place(run, "ray")
