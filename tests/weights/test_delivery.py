"""Weights reach engines in other processes, proven there; what does not arrive stops the run and names the engine."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from strop.backends import Completion, WeightVersion
from strop.errors import ConfigurationError, DeliveryError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.load_balanced import Several
from strop.launch.running.launch import launch
from strop.placement.process_engine import LocalProcess
from strop.recipes import build, recipe_named
from strop.roles import Engine, Reward
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import read_rows
from strop.training.trainers.torch import TorchTrainer
from strop.types import ZERO_TO_ONE, Group, IntArray, Sampling, ScoreRange
from strop.weights.channels.memory import Memory
from strop.weights.channels.shared_memory import SharedMemory
from strop.weights.fingerprint import fingerprint
from tests.placement.light import Letters
from tests.tiny_models import save_pocket_like, save_tiny_model

LONG = Sampling(max_tokens=20)
PROMPT = np.arange(4, 12)


@dataclass
class Tampering(Engine):
    """Flips one bit of what is on its way to an engine, in one version."""

    inner: LocalProcess
    step: int

    def open(self, model: Path) -> None:
        self.inner.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        return await self.inner.sample(prompt, sampling, key)

    async def load(self, version: WeightVersion) -> str:
        if version.step == self.step:
            next(iter(version.location.values())).view(torch.uint8).view(-1)[17] ^= 4
        return await self.inner.load(version)

    def abort(self, key: int) -> None: ...
    def forget(self) -> None: ...
    async def close(self) -> None:
        await self.inner.close()


def change(trainer: TorchTrainer) -> None:
    for tensor in trainer.weights().values():
        tensor.mul_(1.25)


def test_torch_engines_prove_what_they_hold_and_sample_from_it(tmp_path: Path) -> None:
    model = save_tiny_model(tmp_path, "llama", eos_token_id=None)
    trainer, inline = TorchTrainer(), TorchEngine(rows=4)
    trainer.open(model, 0)
    inline.open(model)
    engine = LocalProcess(TorchEngine(rows=4))
    placed = Tampering(engine, step=3)

    async def steps() -> None:
        placed.open(model)
        channel, plain = SharedMemory(), Memory()
        for each in (channel, plain):
            each.connect(trainer, [placed, inline])
        await channel.publish(0)
        change(trainer)
        version = await channel.publish(1)
        assert version.fingerprint == fingerprint(trainer.weights())
        await channel.proven()
        expected = await inline.sample(PROMPT, LONG, 5)
        found = await engine.sample(PROMPT, LONG, 5)
        assert found.tokens.tolist() == expected.tokens.tolist()
        assert found.logprobs.tolist() == expected.logprobs.tolist() and set(found.versions) == {1}
        # a replacement holds the published weights and not those of the model folder or of a trainer that went on
        change(trainer)
        running = asyncio.create_task(engine.sample(PROMPT, LONG, 5))
        os.kill(engine.pid, signal.SIGKILL)
        again = await running
        assert (again.tokens.tolist(), again.versions.tolist()) == (expected.tokens.tolist(), [1] * 20)
        await plain.publish(2)  # tensors of this process find their way too
        change(trainer)
        with pytest.raises(DeliveryError, match=r"engine 0 \(Tampering\) samples from weights \w+ after step 3"):
            await channel.publish(3)
            await channel.proven()

    async def whole() -> None:
        try:
            await steps()
        finally:
            await placed.close()

    asyncio.run(whole())


def test_training_goes_on_while_an_engine_loads_and_what_comes_next_is_sampled_from_it(tmp_path: Path) -> None:
    model = save_tiny_model(tmp_path, "llama", eos_token_id=None)
    trainer, engine, channel = TorchTrainer(), LocalProcess(TorchEngine(rows=4)), SharedMemory()
    trainer.open(model, 0)

    async def steps() -> None:
        engine.open(model)
        channel.connect(trainer, [engine])
        await channel.publish(0)
        await channel.proven()
        for step in range(1, 4):
            change(trainer)
            running = asyncio.create_task(engine.sample(PROMPT, LONG, 7))
            published = fingerprint(trainer.weights())
            assert (await channel.publish(step)).fingerprint == published
            assert channel._delivery is not None and not channel._delivery.done()
            change(trainer)  # what is on its way is a copy
            assert set((await engine.sample(PROMPT, LONG, 5)).versions) == {step}
            await channel.proven()
            assert (await running).tokens.size == 20

    async def whole() -> None:
        try:
            await steps()
        finally:
            await engine.close()

    asyncio.run(whole())


@pytest.mark.parametrize("lag", [0, 2])
def test_what_does_not_arrive_in_a_process_stops_the_run_before_it_is_trained_on(tmp_path: Path, lag: int) -> None:
    model = save_pocket_like(tmp_path / "model")
    values = {"groups_per_step": 2, "group_size": 4, "max_tokens": 12, "heldout_tasks": 2, "heldout_every": 0}
    run = build(recipe_named("grpo"), {"model": str(model), "steps": 6, "learning_rate": 1e-3, "lag": lag, **values})
    engine = Tampering(LocalProcess(TorchEngine()), step=2)
    run = replace(run, engine=engine, channel=SharedMemory(), rewards=(ByTokens(),))
    run.allow_constant_completions = True
    with pytest.raises(DeliveryError, match=r"engine 0 \(Tampering\) samples from weights \w+ after step 2"):
        launch(run, tmp_path, "run")
    with closing(Ledger(tmp_path / "run" / "ledger.db", read_only=True)) as ledger:
        trained = [
            t for step in ledger.trained_steps() for group in ledger.trained_groups(step) for t in group.rollouts
        ]
    assert trained and max(int(turn.versions.max()) for t in trained for turn in t.turns) < 2


def test_a_channel_that_leads_nowhere() -> None:
    with pytest.raises(ConfigurationError, match="connect"):
        asyncio.run(SharedMemory().publish(0))
    assert eval(repr(SharedMemory())) == SharedMemory() == pickle.loads(pickle.dumps(SharedMemory()))


def test_an_engine_that_lags_is_named() -> None:
    engines = Several((LocalProcess(Letters()), LocalProcess(Letters(is_lagging=True))))

    async def publish() -> str:
        engines.open(Path("nowhere"))
        try:
            return await engines.load(WeightVersion(5, "five", "folder"))
        finally:
            await engines.close()

    with pytest.raises(DeliveryError, match=r"engine 1 \(LocalProcess\) samples from weights nothing after step 5"):
        asyncio.run(publish())


def test_a_replacement_that_holds_other_weights_stops_the_run() -> None:
    engine = LocalProcess(Letters(seconds_per_token=0.05, is_lagging=True))

    async def lose_it() -> Any:
        engine.open(Path("nowhere"))
        try:
            for _ in range(2):  # the second time it answers with what it was given the first time
                await engine.load(WeightVersion(5, "five", "folder"))
            running = asyncio.create_task(engine.sample(PROMPT, LONG, 1))
            await asyncio.sleep(0.1)
            os.kill(engine.pid, signal.SIGKILL)
            return await running
        finally:
            await engine.close()

    with pytest.raises(DeliveryError, match="the new process of Letters samples from weights nothing after step 5"):
        asyncio.run(lose_it())


@dataclass
class FlippedByte(TorchEngine):
    """One bit of one byte changes on its way to step 2."""

    async def load(self, version: WeightVersion) -> str:
        weights = {name: tensor.clone() for name, tensor in version.location.items()}
        if version.step == 2:
            next(iter(weights.values())).view(torch.uint8).view(-1)[41] ^= 1
        return await super().load(replace(version, location=weights))


@dataclass
class StaleAdapter(TorchEngine):
    """Gets the frozen base on every sync, with the number of the new version."""

    _base: Any = field(default=None, init=False, repr=False, compare=False)

    async def load(self, version: WeightVersion) -> str:
        self._base = self._base or {name: tensor.clone() for name, tensor in version.location.items()}
        return await super().load(replace(version, location=self._base))


@dataclass
class SkippedPublish(TorchEngine):
    """Never hears of step 2, and answers with what it holds."""

    _held: str = field(default="", init=False, repr=False, compare=False)

    async def load(self, version: WeightVersion) -> str:
        if version.step != 2:
            self._held = await super().load(version)
        return self._held


@dataclass(frozen=True)
class ByTokens(Reward):
    """Never the same for all siblings, so that every step moves the weights."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    weight: float = 1.0
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [float(t.turns[0].tokens.sum() % 97) for t in group.rollouts]


@pytest.mark.parametrize(("engine", "step"), [(FlippedByte, 2), (StaleAdapter, 1), (SkippedPublish, 2)])
@pytest.mark.parametrize("lag", [0, 2])
def test_what_does_not_arrive_stops_the_run_within_one_sync(
    tmp_path: Path, engine: type[TorchEngine], step: int, lag: int
) -> None:
    model = save_pocket_like(tmp_path / "model")
    values = {"groups_per_step": 2, "group_size": 4, "max_tokens": 12, "heldout_tasks": 2, "heldout_every": 0}
    run = build(recipe_named("grpo"), {"model": str(model), "steps": 6, "learning_rate": 1e-3, "lag": lag, **values})
    run = replace(run, engine=Several((TorchEngine(), engine())), rewards=(ByTokens(),))
    run.allow_constant_completions = True
    with pytest.raises(DeliveryError, match=rf"engine 1 \({engine.__name__}\) samples from weights \w+ after step "):
        launch(run, tmp_path, "run")
    assert [row["step"] for row in read_rows(tmp_path / "run" / "metrics.jsonl")] == list(range(step))
