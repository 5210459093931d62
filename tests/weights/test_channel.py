"""Weights reach every engine, or the run stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor

from strop.backends import Completion, WeightVersion
from strop.errors import ConfigurationError, DeliveryError
from strop.roles import Engine
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.trainers.torch import TorchTrainer
from strop.types import IntArray, Sampling
from strop.weights.channels.memory import Memory
from strop.weights.fingerprint import fingerprint
from tests.training.tiny import random_groups, save_llama


@dataclass
class Holder(Engine):
    """An engine that only holds weights, after doing to them what it was told to do."""

    spoil: Callable[[dict[str, Tensor]], None] = lambda weights: None
    held: dict[str, Tensor] = field(default_factory=dict)

    def open(self, model: Path) -> None: ...
    def abort(self, key: int) -> None: ...
    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        raise NotImplementedError

    async def load(self, version: WeightVersion) -> str:
        await asyncio.sleep(0)
        self.held = {name: tensor.clone() for name, tensor in version.location.items()}
        self.spoil(self.held)
        return fingerprint(self.held)


@pytest.fixture
def trainer(tmp_path: Path) -> TorchTrainer:
    trainer = TorchTrainer()
    trainer.open(save_llama(tmp_path), 0)
    return trainer


def flip_one_bit(weights: dict[str, Tensor]) -> None:
    weights["model.norm.weight"].view(-1)[5] *= 1 + 2**-23


def test_every_engine_holds_what_the_trainer_holds(trainer: TorchTrainer) -> None:
    engines = [Holder(), Holder()]
    channel = Memory()
    channel.connect(trainer, engines)
    first = asyncio.run(channel.publish(3))
    trainer.step(pack(random_groups(), TokenMean(), 0, 100), Objective((Likelihood(),)))
    second = asyncio.run(channel.publish(4))
    assert (first.step, second.step) == (3, 4)
    assert first.fingerprint != second.fingerprint
    assert all(fingerprint(engine.held) == second.fingerprint == fingerprint(trainer.weights()) for engine in engines)


def test_one_wrong_bit_stops_the_run(trainer: TorchTrainer) -> None:
    channel = Memory()
    channel.connect(trainer, [Holder(), Holder(spoil=flip_one_bit)])
    with pytest.raises(DeliveryError, match=r"engine 1 \(Holder\) .* after step 7") as caught:
        asyncio.run(channel.publish(7))
    assert fingerprint(trainer.weights()) in str(caught.value)


@dataclass
class Narrow(Holder):
    """Holds bfloat16, and says so."""

    dtype: str = "bfloat16"

    async def load(self, version: WeightVersion) -> str:
        held = {name: torch.empty_like(tensor, dtype=torch.bfloat16) for name, tensor in version.location.items()}
        for name, tensor in held.items():
            tensor.copy_(version.location[name])
        self.held = held
        return fingerprint(held)


@dataclass
class Within:
    """An engine somewhere else."""

    inner: Narrow

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)


def test_a_version_is_named_by_what_engines_hold(trainer: TorchTrainer) -> None:
    narrow = Narrow()
    channel = Memory()
    channel.connect(trainer, [narrow, Within(Narrow())])  # type: ignore[list-item]
    version = asyncio.run(channel.publish(1))
    assert version.fingerprint == fingerprint(narrow.held) != fingerprint(trainer.weights())
    assert all(tensor.dtype == torch.float32 for tensor in trainer.weights().values())
    channel.connect(trainer, [narrow, Narrow(dtype="float32")])
    with pytest.raises(ConfigurationError, match="one type, got bfloat16, float32"):
        asyncio.run(channel.publish(2))


def test_a_channel_that_leads_nowhere(trainer: TorchTrainer) -> None:
    with pytest.raises(ConfigurationError, match="connect"):
        asyncio.run(Memory().publish(0))
    assert eval(repr(Memory())) == Memory()
