"""Parts that hold a network of their own begin with the run's model, when a run starts and when it is trained again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch
from strop.roles import PassRateEstimator, Sampler
from strop.types import FloatArray, Group, Metrics, Sampling, Task
from tests.parts import EvenOrOdd
from tests.test_pipeline import make_run

OPENED: list[tuple[str, int]] = []


@dataclass
class Networked(PassRateEstimator):
    """Believes nothing, and refuses to learn before it was opened."""

    is_open: bool = field(default=False, init=False)

    def load_model(self, model: Path, seed: int) -> None:
        OPENED.append((model.name, seed))
        self.is_open = True

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        assert self.is_open
        return np.full(len(tasks), 0.5, np.float32), np.zeros(len(tasks), np.float32)

    def observe(self, group: Group) -> None:
        assert self.is_open

    def learn(self, groups: Sequence[Group]) -> Metrics:
        assert self.is_open
        return {}


@dataclass
class Wrapping(Sampler):
    """Holds a part with a network inside."""

    inner: Uniform
    held: Networked

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        assert self.held.is_open
        return self.inner.next(step, estimator)


def test_a_estimator_and_what_a_sampler_holds_are_opened_in_a_run_and_in_its_replay(
    model: Path, tmp_path: Path
) -> None:
    OPENED.clear()
    envs = (Arithmetic(1),)
    sampler = Wrapping(Uniform(envs), Networked())
    run = make_run(steps=1, estimator=Networked(), sampler=sampler, rewards=(EvenOrOdd(),), seed=5)
    run.model, run.context, run.sampling = str(model), 64, Sampling(max_tokens=8)

    run.engine = TorchEngine()
    launch(run, tmp_path, "run")
    assert [(model.name, 5)] * 2 == OPENED
    assert all(each.is_equal for each in retrain(tmp_path / "run"))
    assert [(model.name, 5)] * 4 == OPENED
