"""Parts that hang, importable by name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from strop.backends import Objective
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.single_turn import SingleTurn
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.training.batch import Batch
from strop.training.trainers.torch import TorchTrainer
from strop.types import Message, Metrics, Observation


@dataclass
class Hanging(SingleTurn):
    is_blocking: bool = False

    async def step(self, completion: Message) -> Observation:
        if self.is_blocking:
            time.sleep(3600)
        await asyncio.sleep(3600)
        return Observation()


@dataclass(frozen=True)
class HangingEnvironment(Arithmetic):
    is_blocking: bool = False

    def episode(self) -> SingleTurn:
        return Hanging(self, self.is_blocking)


@dataclass
class HangingTrainer(TorchTrainer):
    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        time.sleep(3600)
        return {}


@dataclass
class HangingEngine(TorchEngine):
    async def close(self) -> None:
        await asyncio.sleep(3600)


@dataclass
class MuteEngine(TorchEngine):
    @property
    def num_generated(self) -> int:
        raise KeyError("nobody knows")
